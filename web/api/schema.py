"""The bodies that /v1 accepts: an option that is not listed here is refused by name, never ignored."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field, StringConstraints, ValidationError, create_model
from typing_extensions import TypeAliasType

from model.errors import shorten
from model.generate import MAX_SEED
from model.loaded import MAX_HEAD_SCALE
from model.sampling import MAX_LOGIT_BIAS, SAMPLING_OPTIONS, Option

MAX_TOP_LOGPROBS = 20

Text = Annotated[str, StringConstraints(min_length=1)]
Scale = Annotated[float, Field(ge=-MAX_HEAD_SCALE, le=MAX_HEAD_SCALE)]
# Only the first wrong item of a list is looked at: a large body must not keep the server busy with its mistakes.
Strings = TypeAliasType("Strings", Annotated[list[str], FailFast()])
Texts = TypeAliasType("Texts", Annotated[list[Text], FailFast()])
TokenIds = TypeAliasType("TokenIds", Annotated[list[Annotated[int, Field(ge=0)]], FailFast()])
TokenIdLists = TypeAliasType("TokenIdLists", Annotated[list[TokenIds], FailFast()])
HeadMask = TypeAliasType("HeadMask", Annotated[list[Annotated[list[Scale], FailFast()]], FailFast()])
LogitBias = dict[str, Annotated[float, Field(ge=-MAX_LOGIT_BIAS, le=MAX_LOGIT_BIAS)]]
EmptyList = Annotated[list[Any], Field(max_length=0)] | None

# For a field that may have several types, pydantic reports why it has none of them; this is shorter.
UNIONS = {
    "prompt": "a string, a list of strings, a list of token ids, or a list of such lists",
    "input": "a string, a list of strings, a list of token ids, or a list of such lists",
    "stop": "a string or a list of strings, none of them empty",
}


class Body(BaseModel):
    """Strict: neither a string nor NaN is a number."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=())

    model: str | None = Field(None, description="One that `/v1/models` lists; the first of them by default.")


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    include_usage: bool | None = Field(None, description="Send a last chunk with the token counts.")


def as_field(row: Option) -> tuple[Any, Any]:
    """A sampling option as pydantic has it; null stands for the default."""
    bounds: dict[str, float] = {"gt" if row.above else "ge": row.least, "le": row.most}
    return row.kind | None, Field(row.default, description=row.help, **bounds)  # type: ignore[call-overload]


FIELDS: dict[str, Any] = {name: as_field(row) for name, row in SAMPLING_OPTIONS.items()}
Sampling: Any = create_model("Sampling", __base__=Body, **FIELDS)


class CompletionRequest(Sampling):  # type: ignore[misc]  # Sampling is made from the table of options
    """OpenAI's text completion, without what is not supported, and with a few more options."""

    prompt: str | Strings | TokenIds | TokenIdLists = Field(description="Text or token ids, one or a list of them.")
    max_tokens: int | None = Field(16, ge=0, description="0 only reads the prompt, for `echo` with `logprobs`.")
    n: int | None = Field(1, ge=1, description="Texts for each prompt.")
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    stop: Text | Texts | None = None
    seed: int | None = Field(None, ge=-MAX_SEED, le=MAX_SEED)
    logprobs: int | None = Field(None, ge=0, le=MAX_TOP_LOGPROBS)
    echo: bool | None = False
    logit_bias: LogitBias | None = Field(None, description="By token id.")
    head_mask: HeadMask | None = Field(None, description="`[layer][head]`: 1 keeps a head, 0 removes it.")
    context_shift: bool | None = Field(
        False, description="When the context is full, re-read its newer half and write on."
    )
    # Options that are not supported, with the one value that asks for nothing.
    best_of: Literal[1] | None = None
    suffix: None = None
    user: str | None = None


class TextPart(BaseModel):
    """A part of a message; no other kind can be read."""

    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["text"]
    text: str


TextParts = TypeAliasType("TextParts", Annotated[list[TextPart], FailFast()])


class Message(BaseModel):
    """A turn of a conversation. What is not text is refused."""

    model_config = ConfigDict(extra="forbid", strict=True)

    role: Literal["system", "developer", "user", "assistant"]
    content: str | TextParts
    name: str | None = None
    refusal: None = None
    tool_calls: EmptyList = None

    @property
    def text(self) -> str:
        return self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)


class PlainText(BaseModel):
    """The one format of an answer that is supported."""

    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["text"]


class ChatRequest(Sampling):  # type: ignore[misc]
    """OpenAI's chat completion, without what is not supported, and with a few more options."""

    messages: Annotated[list[Message], FailFast(), Field(min_length=1)]
    max_tokens: int | None = Field(None, ge=1, description="As many as fit by default.")
    max_completion_tokens: int | None = Field(None, ge=1, description="The newer name of `max_tokens`.")
    n: int | None = Field(1, ge=1)
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    stop: Text | Texts | None = None
    seed: int | None = Field(None, ge=-MAX_SEED, le=MAX_SEED)
    logprobs: bool | None = False
    top_logprobs: int | None = Field(None, ge=0, le=MAX_TOP_LOGPROBS)
    logit_bias: LogitBias | None = Field(None, description="By token id.")
    head_mask: HeadMask | None = Field(None, description="`[layer][head]`: 1 keeps a head, 0 removes it.")
    context_shift: bool | None = Field(
        False, description="When the context is full, re-read its newer half and write on."
    )
    # Options that are not supported, with the values that ask for nothing.
    user: str | None = None
    metadata: dict[str, str] | None = None
    store: Literal[False] | None = None
    tools: EmptyList = None
    tool_choice: Literal["none", "auto"] | None = None
    parallel_tool_calls: bool | None = None
    response_format: PlainText | None = None


class EmbeddingsRequest(Body):
    """OpenAI's embeddings. A vector is the mean of the last hidden states, after the final layer norm."""

    input: str | Strings | TokenIds | TokenIdLists = Field(description="Text or token ids, one or a list of them.")
    encoding_format: Literal["float", "base64"] | None = "float"
    # Options that are not supported, with the one value that asks for nothing.
    dimensions: None = None
    user: str | None = None


class AttentionRequest(Body):
    """Which attention weights: those of the text ``prompt``, or of ``tokens``."""

    prompt: str | None = None
    tokens: TokenIds | None = Field(None, description="Token ids, instead of a prompt.")
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
        return "", f"The body is not valid JSON: {problem['ctx']['error']}.", "invalid_json"
    if problem["type"] == "none_required" or field == "best_of":
        return field, f"The option {field!r} is not supported.", "unsupported_option"
    if not field:
        return field, "The body must be a JSON object.", "invalid_json"
    if field in SAMPLING_OPTIONS:
        message = f"{field} must be {SAMPLING_OPTIONS[field].allowed}, found {shorten(problem['input'])}."
        return field, message, "invalid_value"
    if field in UNIONS:
        return field, f"{field} must be {UNIONS[field]}.", "invalid_value"
    return field, f"{field}: {problem['msg']}, found {shorten(problem['input'])}.", "invalid_value"
