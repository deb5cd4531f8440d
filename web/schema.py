"""The bodies that /v1 takes: what is not listed here is refused by name, never ignored."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field, StringConstraints, ValidationError
from typing_extensions import TypeAliasType

from model.loaded import MAX_HEAD_SCALE, MAX_SEED
from model.sampling import MAX_LOGIT_BIAS, MAX_TEMPERATURE

MAX_TOP_LOGPROBS = 20

Text = Annotated[str, StringConstraints(min_length=1)]
Scale = Annotated[float, Field(ge=-MAX_HEAD_SCALE, le=MAX_HEAD_SCALE)]
# Of a list only the first wrong item is looked at: a large body must not keep the server busy with its mistakes.
Strings = TypeAliasType("Strings", Annotated[list[str], FailFast()])
Texts = TypeAliasType("Texts", Annotated[list[Text], FailFast()])
TokenIds = TypeAliasType("TokenIds", Annotated[list[Annotated[int, Field(ge=0)]], FailFast()])
TokenIdLists = TypeAliasType("TokenIdLists", Annotated[list[TokenIds], FailFast()])
HeadMask = TypeAliasType("HeadMask", Annotated[list[Annotated[list[Scale], FailFast()]], FailFast()])

# Of a field that may be of several types, pydantic reports why it is none of them; this is shorter.
UNIONS = {
    "prompt": "a string, a list of strings, a list of token ids, or a list of such lists",
    "stop": "a string or a list of strings, none of them empty",
}


class Body(BaseModel):
    """Strict: a string is no number, and NaN is none either."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=())

    model: str | None = Field(None, description="One that `/v1/models` lists; the first of them by default.")


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    include_usage: bool | None = Field(None, description="Send a last chunk with the numbers of tokens.")


class CompletionRequest(Body):
    """OpenAI's text completion, without what is not supported, and with a few options more."""

    prompt: str | Strings | TokenIds | TokenIdLists = Field(description="Text or token ids, one or a list of them.")
    max_tokens: int | None = Field(16, ge=0, description="0 only reads the prompt, for `echo` with `logprobs`.")
    temperature: float | None = Field(1.0, ge=0, le=MAX_TEMPERATURE)
    top_p: float | None = Field(1.0, gt=0, le=1)
    top_k: int | None = Field(None, ge=0, description="0 or null: all tokens.")
    min_p: float | None = Field(0.0, ge=0, le=1)
    n: int | None = Field(1, ge=1, description="Texts for each prompt.")
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    stop: Text | Texts | None = None
    seed: int | None = Field(None, ge=-MAX_SEED, le=MAX_SEED)
    logprobs: int | None = Field(None, ge=0, le=MAX_TOP_LOGPROBS)
    echo: bool | None = False
    presence_penalty: float | None = Field(0.0, ge=-2, le=2)
    frequency_penalty: float | None = Field(0.0, ge=-2, le=2)
    repetition_penalty: float | None = Field(1.0, ge=0.01, le=100)
    logit_bias: dict[str, Annotated[float, Field(ge=-MAX_LOGIT_BIAS, le=MAX_LOGIT_BIAS)]] | None = Field(
        None, description="By token id."
    )
    head_mask: HeadMask | None = Field(None, description="`[layer][head]`: 1 keeps a head, 0 removes it.")
    context_shift: bool | None = Field(
        False, description="When the context is full, re-read its newer half and write on."
    )
    # Of what is not supported, the value that asks for nothing.
    best_of: Literal[1] | None = None
    suffix: None = None
    user: str | None = None


class AttentionRequest(Body):
    """Which attention weights: of the text ``prompt``, or of ``tokens``."""

    prompt: str | None = None
    tokens: TokenIds | None = Field(None, description="Token ids, in the place of a prompt.")
    layers: list[int] | None = Field(None, description="Counted from 0; all by default.")
    heads: list[int] | None = Field(None, description="Counted from 0; all by default.")
    head_mask: HeadMask | None = Field(None, description="`[layer][head]`: 1 keeps a head, 0 removes it.")
    format: Literal["json", "safetensors"] | None = "json"


def first_problem(error: ValidationError) -> tuple[str, str, str]:
    """The field that is wrong, what is wrong with it, and a short name for that."""
    problem = max(error.errors(include_url=False), key=lambda each: each["type"] == "extra_forbidden")
    place = problem["loc"]
    field = str(place[0]) if place else ""
    if problem["type"] == "extra_forbidden":
        field = str(place[-1])
        return field, f"The option {field!r} is not supported.", "unsupported_option"
    if problem["type"] == "missing":
        return field, f"{field} is missing.", "missing_field"
    if problem["type"] == "json_invalid":
        return "", f"The body is no JSON: {problem['ctx']['error']}.", "invalid_json"
    if problem["type"] == "none_required" or field == "best_of":
        return field, f"The option {field!r} is not supported.", "unsupported_option"
    if not field:
        return field, "The body must be a JSON object.", "invalid_json"
    if field in UNIONS:
        return field, f"{field} must be {UNIONS[field]}.", "invalid_value"
    return field, f"{field}: {problem['msg']}, found {shown(problem['input'])}.", "invalid_value"


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + " ..."
