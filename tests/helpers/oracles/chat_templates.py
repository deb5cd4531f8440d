"""Chat templates in the style of those that instruction-tuned models come with, and small models that have one."""

from model import LoadedModel
from model.tokenizer import from_spec

from ..models import tiny_model
from .pipelines import llama2, llama3, qwen2

CHATML = """\
{% for message in messages %}\
{% if loop.first and messages[0]['role'] != 'system' %}<|im_start|>system
You are a helpful assistant.<|im_end|>
{% endif %}<|im_start|>{{ message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}\
{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""

QWEN = """\
{%- if tools is not none %}{{ raise_exception('tools: ' ~ tools) }}{% endif %}
{%- set ns = namespace(last_query=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- if message.role == 'user' %}
        {%- set ns.last_query = messages|length - 1 - loop.index0 %}
        {%- break %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content %}
    {%- if message.role == 'assistant' and '</think>' in content and loop.index0 < ns.last_query %}
        {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
    {%- endif %}
    {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}"""

LLAMA3 = """\
{{- bos_token }}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content'] | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = '' %}
{%- endif %}
{{- '<|start_header_id|>system<|end_header_id|>\\n\\nToday: ' + strftime_now('%Y') + '\\n\\n' }}
{{- system_message + '<|eot_id|>' }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' }}
    {%- if message['role'] == 'assistant' %}{% generation %}{{ message['content'] | trim }}{% endgeneration %}
    {%- else %}{{ message['content'] | trim }}{% endif %}
    {{- '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"""

MISTRAL = """\
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content'] %}{% set messages = messages[1:] %}
{%- endif %}
{{- bos_token }}
{%- for message in messages %}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
    {%- endif %}
    {%- if message['role'] == 'user' and loop.last and system_message is defined %}
        {{- '[INST] ' + system_message + '\\n\\n' + message['content'] + ' [/INST]' }}
    {%- elif message['role'] == 'user' %}
        {{- '[INST] ' + message['content'] + ' [/INST]' }}
    {%- else %}
        {{- ' ' + message['content'] + eos_token }}
    {%- endif %}
{%- endfor %}"""

# The template, the content of a ``tokenizer.json``, and the ids of <bos> and <eos>.
CHATS = {
    "chatml": (CHATML, qwen2, None, 2),
    "qwen": (QWEN, qwen2, None, 2),
    "llama 3": (LLAMA3, llama3, 0, 1),
    "mistral": (MISTRAL, lambda: llama2(prepends=False), 1, 2),
    "llama 2": (MISTRAL, llama2, 1, 2),
}


def chat_model(name: str, context_length: int = 512) -> LoadedModel:
    """A random model of that kind, called "tiny"."""
    template, spec, bos, eos = CHATS[name]
    loaded = tiny_model(tokenizer=from_spec(spec()), context_length=context_length)
    loaded.chat_template, loaded.bos_token_id, loaded.eos_token_id = template, bos, eos
    return loaded
