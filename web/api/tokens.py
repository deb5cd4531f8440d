"""/tokenize and /detokenize, as in vLLM: from texts and conversations to tokens and back, without the model."""

from collections.abc import Hashable

from model import InputError, LoadedModel
from model.errors import UnknownTokens, counted

from ..serving.chat_templates import Templates
from ..serving.conversation import prompt_ids, render
from ..serving.inputs import check_length
from ..settings import Limits
from .schema import DetokenizeRequest, TokenizeRequest, as_conversation


async def tokenize(
    templates: Templates, client: Hashable, loaded: LoadedModel, asked: TokenizeRequest, limits: Limits
) -> dict[str, object]:
    """Answer /tokenize. The text may be longer than the context. Raises ``InputError``."""
    if ("prompt" in asked.model_fields_set) == ("messages" in asked.model_fields_set):
        raise InputError("prompt", "Give either prompt or messages, but not both.")
    if "prompt" in asked.model_fields_set:
        field, text = "prompt", asked.prompt
    else:
        messages, open_end = as_conversation(asked.messages), asked.add_generation_prompt
        options = asked.chat_template_kwargs
        text = await render(
            templates, client, loaded, messages, add_generation_prompt=open_end, template_options=options
        )
        field = "messages"
    check_length(field, "text", text, limits.max_prompt_characters)
    try:
        tokenizer = loaded.tokenizer
        if asked.add_special_tokens is None and field == "messages":
            ids = prompt_ids(loaded, text)
        else:
            ids = tokenizer.encode(text) if asked.add_special_tokens is False else tokenizer.encode_prompt(text)
    except InputError as error:
        raise error.about(field) from None
    texts = [token.text for token in loaded.tokens(ids)] if asked.return_token_strs else None
    return {"count": len(ids), "max_model_len": loaded.config.context_length, "tokens": ids, "token_strs": texts}


def detokenize(loaded: LoadedModel, asked: DetokenizeRequest, limits: Limits) -> dict[str, object]:
    """Answer /detokenize. Raises ``InputError``."""
    ids, most = asked.tokens, limits.max_prompt_characters
    if len(ids) > most:
        raise InputError("tokens", f"tokens has {counted(len(ids), 'id')}; at most {most:,} are accepted.")
    for token_id in ids:
        if token_id >= loaded.config.vocab_size:
            raise UnknownTokens(token_id, loaded.config.vocab_size).about("tokens")
    return {"prompt": loaded.tokenizer.decode(ids)}
