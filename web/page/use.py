"""Use: how programs call the server, with the page's own address in every example."""

import json
import re

import gradio as gr

from ..services import Services
from ..serving.served_models import TOKEN_HEADER

# The address comes from the visitor's browser: nothing in it may break out of the code it is put into.
ADDRESS = re.compile(r"https?://[\w.:\[\]~/-]{1,200}", re.ASCII)
DEFAULT_ADDRESS = "http://127.0.0.1:7860"
ADDRESS_SCRIPT = "() => new URL('.', document.baseURI).href"

TEXT = """
Programs can get everything this page shows: the texts a model writes, its probabilities and its attention weights.
Every example runs as it is, with the address of this server and its first model.

### Write with curl
The same as OpenAI's text completion. With `"stream": true` the text arrives as server-sent events.
```bash
curl {curl_key}{address}/v1/completions -d '{completion}'
```

### Write with OpenAI's client
```bash
pip install openai
```
```python
from openai import OpenAI

client = OpenAI(base_url="{address}/v1", api_key={api_key})
for chunk in client.completions.create(model={model}, prompt={prompt}, max_tokens=50, seed=1, stream=True):
    print(chunk.choices[0].text, end="")
```
Beyond OpenAI's options there are `top_k`, `min_p`, `repetition_penalty`, `context_shift`, and `head_mask`, which
removes or scales heads; pass them in the client's `extra_body`. An option that is not in the
[list]({address}/v1/openapi.json) is an error, and the error names it.

{chat}### Attention weights with curl
`attention[layer][head][query][key]`: how much each token (query) looks at each token (key).
```bash
curl {curl_key}{address}/v1/attention -d '{attention}'
```

### Attention weights of all heads as a file
```bash
curl {curl_key}{address}/v1/attention -d '{safetensors}' -o attention.safetensors
```

### Questions of Ask with curl
Every question that *Ask* answers is a route, for one text or, with `/prompts`, for many.
[The document]({address}/v1/openapi.json) lists them all.
```bash
curl {curl_key}{address}/v1/lens/knockout -d '{knockout}'
curl {curl_key}{address}/v1/lens/knockout/prompts -d '{many}'
```

### Activations as a file
Named as TransformerLens names its hooks, for the safetensors library.
```bash
curl {curl_key}{address}/v1/activations -d '{activations}' -o activations.safetensors
```

### Write with gradio_client
```bash
pip install gradio_client
```
```python
from gradio_client import Client

client = Client("{address}"{client_key})
for text in client.submit({prompt}, model={model}, max_new_tokens=50, temperature=0.8, seed=1, api_name="/generate"):
    print(text, end="\\n---\\n")
print(client.predict({prompt}, model={model}, layer=0, head=0, api_name="/attention"))
```
There are also `/tokenize`, `/models` and others; `/train` trains a small GPT on a text and reports how it learns. [This
page]({address}/?view=api) lists all parameters.

### As tools of a language model (MCP)
The same endpoints, if the server has the package `mcp` (`pip install "mcp<2"`). In the settings of an MCP client:
```json
{mcp}
```
{own}
### Is the server running?
`200` when models are served, `503` while they load. `/metrics` has counters for Prometheus.
```bash
curl {address}/health
```
"""
CHAT = """\
### Answer with curl
OpenAI's chat completion: the prompt is made by the model's own chat template.
```bash
curl {curl_key}{address}/v1/chat/completions -d '{conversation}'
```

"""
OWN = """
### A model that you trained here
*Train* shows the token of your model when it is ready. With it in a header, the model answers under `/v1`, and Ask's
routes too, until the server deletes it; a copy of this server on another machine does not have it.
```bash
curl {curl_key}-H "{header}: $HEADSCOPE_MODEL_TOKEN" {address}/v1/models
```
"""
KEY_NOTE = "\nThis server requires an API key: run `export HEADSCOPE_API_KEY=...` before the examples.\n"


def use_section(services: Services, demo: gr.Blocks, with_key: bool) -> None:
    """Build the examples, which get the page's address when it opens."""
    text = gr.Markdown(examples(services, DEFAULT_ADDRESS, with_key), elem_id="hs-use")
    address = gr.Textbox(visible=False)

    async def show(found: str) -> str:
        await services.served.wait()
        return examples(services, found, with_key)

    demo.load(show, address, text, js=ADDRESS_SCRIPT, show_progress="hidden", api_visibility="private")


def examples(services: Services, address: str, with_key: bool) -> str:
    """All examples as Markdown, for one address of the server."""
    address = address.rstrip("/") if isinstance(address, str) and ADDRESS.fullmatch(address) else DEFAULT_ADDRESS
    name = next(iter(services.served.models), None)
    opening = services.openings.written.get(name or "")
    prompt = {"prompt": opening.settings["prompt"] if opening else "ROMEO:"}
    named = ({"model": name} if name else {}) | prompt
    many: dict[str, object] = {"prompts": [prompt["prompt"], "ROMEO:"]} | ({"model": name} if name else {})
    server: dict[str, object] = {"url": f"{address}/gradio_api/mcp/"}
    if with_key:
        server["headers"] = {"Authorization": "Bearer ..."}
    note = KEY_NOTE if with_key else ""
    curl_key = '-H "Authorization: Bearer $HEADSCOPE_API_KEY" ' if with_key else ""
    own = OWN.format(curl_key=curl_key, header=TOKEN_HEADER, address=address)
    text = TEXT.format(
        chat=chat_example(services, address, curl_key),
        own=own if services.served.settings.train else "",
        address=address,
        prompt=json.dumps(prompt["prompt"]),
        model=json.dumps(name) if name else "None",
        completion=quoted(named | {"max_tokens": 50, "seed": 1}),
        attention=quoted(named | {"layers": [0], "heads": [0]}),
        safetensors=quoted(named | {"format": "safetensors"}),
        knockout=quoted(named | {"method": "mean"}),
        many=quoted(many),
        activations=quoted(named | {"sites": ["hook_resid_post", "attn.hook_z"], "layers": [0]}),
        mcp=json.dumps({"mcpServers": {"headscope": server}}, indent=2),
        api_key='os.environ["HEADSCOPE_API_KEY"]' if with_key else '"none"',
        client_key=', headers={"Authorization": "Bearer " + os.environ["HEADSCOPE_API_KEY"]}' if with_key else "",
        curl_key=curl_key,
    )
    return note + (re.sub(r"(```python\n)", r"\1import os\n\n", text) if with_key else text)


def chat_example(services: Services, address: str, curl_key: str) -> str:
    """The example of a conversation with the first model that has a chat template; "" if none has one."""
    name = next((name for name, loaded in services.served.models.items() if loaded.chat_template), None)
    if name is None:
        return ""
    messages = [{"role": "user", "content": "What is attention?"}]
    conversation = quoted({"model": name, "messages": messages, "max_tokens": 50, "seed": 1})
    return CHAT.format(address=address, curl_key=curl_key, conversation=conversation)


def quoted(content: dict[str, object]) -> str:
    """JSON that can be put between single quotes in a shell."""
    return json.dumps(content).replace("'", "\\u0027")
