"""Checks of fields that the page, the HTTP API, the Gradio endpoints and MCP share.

The functions raise ``InputError``, which names the invalid field.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from model import GenerationRequest, InputError, LoadedModel, SamplingSettings
from model.errors import InvalidValue, counted, shorten
from model.generate import REQUEST_OPTIONS
from model.modules.head_tensors import Head
from model.sampling import SAMPLING_OPTIONS

from ..settings import Limits
from .served_models import ServedModels

OPTIONS = REQUEST_OPTIONS | SAMPLING_OPTIONS
DEFAULT_LENGTH = REQUEST_OPTIONS["max_new_tokens"].default
SLIDERS = {name: row.slider for name, row in OPTIONS.items() if row.slider}  # the options with a slider on the page


def parse_request(served: ServedModels, fields: Mapping[str, object]) -> tuple[LoadedModel, GenerationRequest]:
    """The model and the request that ``fields`` describe: prompt, model, and the fields of ``parse_options``."""
    loaded = served.find(fields.get("model"))
    limits = served.settings.limits
    return loaded, parse_options(limits, loaded, parse_prompt(limits, loaded, fields.get("prompt")), fields)


def parse_options(
    limits: Limits, loaded: LoadedModel, ids: list[int], fields: Mapping[str, object]
) -> GenerationRequest:
    """A request to continue ``ids`` with the options in ``OPTIONS``, a head mask and ``context_shift``."""
    # JSON and sliders may give 3.0 instead of 3.
    given: dict[str, Any] = {name: whole(fields[name]) if row.kind is int else fields[name]
             for name, row in OPTIONS.items() if name in fields}  # fmt: skip
    max_new_tokens, seed = given.pop("max_new_tokens", DEFAULT_LENGTH), given.pop("seed", None)
    context_shift = fields.get("context_shift", False)
    if not isinstance(context_shift, bool):
        raise InvalidValue("context_shift", context_shift, "true or false")
    check_new_tokens(limits, "max_new_tokens", max_new_tokens)
    sampling = SamplingSettings(**given)
    head_mask: Any = fields.get("head_mask")
    return loaded.request(
        ids, max_new_tokens, sampling=sampling, seed=seed, head_mask=head_mask, context_shift=context_shift
    )


def check_new_tokens(limits: Limits, field: str, n: object) -> None:
    """Raise ``InputError`` unless a text may have ``n`` new tokens."""
    if type(n) is not int or not 1 <= n <= limits.max_new_tokens:
        raise InvalidValue(field, n, f"an integer from 1 to {limits.max_new_tokens:,}")


def settings_of(request: GenerationRequest, prompt: str) -> dict[str, object]:
    """The settings needed to reproduce this text, as values of the page's controls."""
    values = {name: getattr(request if name in REQUEST_OPTIONS else request.sampling, name) for name in SLIDERS}
    values["top_k"] = values["top_k"] or 0
    return {"prompt": prompt, "seed": request.seed} | values


def parse_prompt(limits: Limits, loaded: LoadedModel, prompt: object) -> list[int]:
    """The token ids of a prompt, after checking its type, its length, and that the model can read it."""
    return loaded.parse_prompt(check_text(limits, prompt))


def parse_text(limits: Limits, loaded: LoadedModel, text: object) -> list[int]:
    """The token ids of any text in the model's alphabet; it may be empty or longer than the context."""
    return loaded.tokenizer.encode_prompt(check_text(limits, text))


def parse_ids(
    limits: Limits,
    loaded: LoadedModel,
    text: str | None,
    ids: Sequence[int] | None,
    names: tuple[str, str] = ("prompt", "tokens"),
) -> list[int]:
    """The token ids of a text that is given either as text or as ids, in the fields called ``names``."""
    field, ids_field = names
    if text is None and ids is None:
        raise InputError(field, f"Either {field} or {ids_field} is needed.")
    if text is not None and ids is not None:
        raise InputError(field, f"Give either {field} or {ids_field}, but not both.")
    try:
        if text is not None:
            check_length(field, field, text, limits.max_prompt_characters)
        return loaded.parse_prompt(text if text is not None else ids or [])
    except InputError as error:
        raise error.about(field) from None


def check_text(limits: Limits, text: object) -> str:
    """Return ``text`` unchanged. Raises ``InputError`` if it is not a string or too long."""
    if not isinstance(text, str):
        raise InputError("prompt", f"The prompt must be text, found {shorten(text)}.")
    check_length("prompt", "prompt", text, limits.max_prompt_characters)
    return text


def check_length(field: str, noun: str, text: str, most: int) -> None:
    """Raise ``InputError`` for a text of more than ``most`` characters."""
    if len(text) > most:
        raise InputError(field, f"The {noun} has {counted(len(text), 'character')}; at most {most:,} are accepted.")


def parse_head(limits: Limits, loaded: LoadedModel, layer: object, head: object, n_tokens: int) -> Head:
    """Check that the model has this layer and head, and that the answer has few enough weights."""
    layer = parse_index("layer", layer, 0, loaded.config.n_layer - 1)
    head = parse_index("head", head, 0, loaded.config.n_head - 1)
    most = limits.max_json_weights
    if n_tokens**2 > most:
        message = f"The prompt has {n_tokens:,} tokens, which is {n_tokens**2:,} weights; at most {most:,} are sent."
        raise InputError("prompt", message)
    return layer, head


def parse_index(field: str, value: object, least: int, most: int) -> int:
    """``value`` as an integer. Raises ``InputError`` unless it is from ``least`` to ``most``."""
    value = whole(value)
    if type(value) is not int or not least <= value <= most:
        raise InvalidValue(field, value, f"an integer from {least} to {most}")
    return value


def whole(value: Any) -> Any:
    """Return 3 for 3.0, and anything else unchanged."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
