"""The bodies that /v1 accepts. An option that is not listed here is never ignored: an error names it.

Their JSON schemas in the OpenAPI document are as strict as the checks; ``Also`` adds what pydantic cannot derive.
"""

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    StringConstraints,
    WithJsonSchema,
    create_model,
    model_validator,
)
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from model.generate import MAX_SEED
from model.lens.interventions.sites import SITE_NAMES, SITES
from model.sampling import MAX_LOGIT_BIAS, SAMPLING_OPTIONS, GenerationOption

from ..ask.fields import HEAD_MASK
from ..body_types import MAX_ITEMS, Also, HeadMask, NotEmpty, TokenIds, Whole
from ..serving.conversation import Conversation
from ..serving.inputs import whole

MAX_TOP_LOGPROBS = 20
MAX_TEMPLATE_OPTIONS = 4_000  # characters of JSON
GIVEN_TO_TEMPLATES = ["messages", "tools", "documents", "add_generation_prompt"]
MAX_METADATA = 16  # entries, OpenAI's limit
DEFAULT_MAX_TOKENS = 16  # OpenAI's default for /v1/completions


def boolean(value: Any) -> Any:
    """Reject 0 and 1, which equal False and True in Python but not in JSON."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise PydanticCustomError("literal_error", "Input should be true or false")
    return value


OnlyFalse = Annotated[Literal[False], BeforeValidator(boolean)]


# The schemas of the values that say the same as null. (Generators of clients do not read an enum of several types.)
SAID_BY = {
    bool: {"const": False},
    str: {"type": "string", "maxLength": 0},
    list: {"type": "array", "items": {}, "maxItems": 0},
    dict: {"type": "object", "maxProperties": 0},
}


def unset_by(*kinds: type) -> Any:
    """The type of an unsupported option: null, or the false or empty value of one of these types."""

    def as_null(value: Any) -> Any:
        return None if type(value) in kinds and not value else value

    schemas = [{"type": "null"}, *(SAID_BY[kind] for kind in kinds)]
    return Annotated[None, BeforeValidator(as_null), WithJsonSchema({"anyOf": schemas})]


Unset: Any = unset_by(bool, str, list)  # not by an empty object, which switches some features on
UnsetObject: Any = unset_by(bool, str, list, dict)
NonEmptyText = Annotated[str, StringConstraints(min_length=1)]
# JSON has only one kind of number, so 3.0 is 3. (For bodies only: the values of a query are text.)
Count = Annotated[int | None, BeforeValidator(whole)]
Strings = TypeAliasType("Strings", Annotated[list[Annotated[str, Also(minLength=1)]], FailFast(), MAX_ITEMS, NotEmpty])
Texts = TypeAliasType("Texts", Annotated[list[NonEmptyText], FailFast()])
TokenIdLists = TypeAliasType("TokenIdLists", Annotated[list[TokenIds], FailFast(), MAX_ITEMS, NotEmpty])
AnyTokenIds = TypeAliasType("AnyTokenIds", Annotated[list[Annotated[int, Field(ge=0)]], FailFast(), Whole])
Index = Annotated[int, Also(minimum=0)]
Indices = TypeAliasType(
    "Indices", Annotated[list[Index], FailFast(), MAX_ITEMS, Whole, Also(minItems=1, uniqueItems=True)]
)
SiteName = Literal[SITE_NAMES]  # type: ignore[valid-type]
SiteNames = TypeAliasType(
    "SiteNames", Annotated[list[SiteName], FailFast(), Field(min_length=1, max_length=len(SITE_NAMES))]
)
Bias = Annotated[float, Field(ge=-MAX_LOGIT_BIAS, le=MAX_LOGIT_BIAS)]
LogitBias = Annotated[dict[str, Bias], Also(propertyNames={"pattern": "^[0-9]{1,9}$"})]
Metadata = Annotated[dict[str, str], Field(max_length=MAX_METADATA)]
Prompts = Annotated[str, Also(minLength=1)] | Strings | TokenIds | TokenIdLists


def template_options(options: dict[str, Any]) -> dict[str, Any]:
    """Options of a chat template that are neither too long nor what the server itself gives to it."""
    for name in GIVEN_TO_TEMPLATES:
        if name in options:
            raise PydanticCustomError("value_error", "Value error, {name} is not one of its options", {"name": name})
    n_characters = len(json.dumps(options))
    if n_characters > MAX_TEMPLATE_OPTIONS:
        raise ValueError(f"it has {n_characters:,} characters of JSON; at most {MAX_TEMPLATE_OPTIONS:,} are accepted")
    return options


TemplateOptions = Annotated[
    dict[str, Any],
    AfterValidator(template_options),
    Also(propertyNames={"not": {"enum": GIVEN_TO_TEMPLATES}}),
]


def given(field: str) -> JsonDict:
    """JSON schema: ``field`` is present and not null."""
    return {"properties": {field: {"not": {"type": "null"}}}, "required": [field]}


def needs(field: str, asks: JsonDict, other: str) -> JsonDict:
    """JSON schema: ``field`` may only ask for something, as the schema ``asks`` tells, if ``other`` is true."""
    asked: JsonDict = {"properties": {field: asks}, "required": [field]}
    return {"if": asked, "then": {"properties": {other: {"const": True}}, "required": [other]}}


INCLUDES_USAGE: JsonDict = {
    "type": "object",
    "properties": {"include_usage": {"const": True}},
    "required": ["include_usage"],
}
NEEDS_STREAM = needs("stream_options", INCLUDES_USAGE, "stream")
NEEDS_LOGPROBS = needs("top_logprobs", {"type": "number", "exclusiveMinimum": 0}, "logprobs")


IS_ASSISTANT: JsonDict = {"properties": {"role": {"const": "assistant"}}, "required": ["role"]}
NEEDS_CONTENT: JsonDict = {"if": IS_ASSISTANT, "else": given("content")}


def one_of(*fields: str) -> JsonDict:
    """JSON schema: exactly one of ``fields`` is given."""
    return {"oneOf": [given(field) for field in fields]}


ONE_SOURCE: JsonDict = {"oneOf": [{"required": [name]} for name in ("prompt", "messages")]}
ONE_TEXT = one_of("prompt", "tokens")


class Body(BaseModel):
    """A strict body: neither a string nor NaN is accepted as a number."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=())

    model: str | None = Field(None, description="A name that `/v1/models` lists; the first one by default.")


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    include_usage: bool | None = Field(None, description="Send the token counts in a final chunk.")
    include_obfuscation: Unset = None
    continuous_usage_stats: Unset = None  # vLLM's


class PlainText(BaseModel):
    """The only supported response format."""

    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["text"]


def as_field(row: GenerationOption) -> tuple[Any, Any]:
    """The pydantic field of a sampling option; null stands for the default."""
    bounds: dict[str, float] = {"gt" if row.above else "ge": row.least, "le": row.most}
    kind: Any = Count if row.kind is int else row.kind | None
    return kind, Field(row.default, description=row.help, **bounds)  # type: ignore[call-overload]


FIELDS: dict[str, Any] = {name: as_field(row) for name, row in SAMPLING_OPTIONS.items()}
Sampling: Any = create_model("Sampling", __base__=Body, **FIELDS)


class Writing(Sampling):  # type: ignore[misc]  # Sampling is generated from the table of options
    """The options shared by text and chat completions."""

    max_completion_tokens: Count = Field(
        None, ge=1, description="The newer name of `max_tokens`; the smaller value applies."
    )
    min_tokens: Count = Field(
        None, ge=0, description="The text does not end before this many tokens, unless `max_tokens` is reached."
    )
    n: Count = Field(1, ge=1, description="The number of texts for each prompt.")
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    stop: Literal[""] | NonEmptyText | Texts | None = None
    stop_token_ids: AnyTokenIds | None = Field(
        None, description="Tokens that end the text; it includes them unless they are special."
    )
    skip_special_tokens: bool | None = Field(
        True, description="Leave special tokens out of what is written. One that ends the text is never part of it."
    )
    seed: Count = Field(None, ge=-MAX_SEED, le=MAX_SEED)
    logit_bias: LogitBias | None = Field(None, description="Numbers to add to the logits of tokens, by token id.")
    head_mask: HeadMask | None = Field(None, description=HEAD_MASK.help)
    context_shift: bool | None = Field(
        False, description="When the context is full, re-read its newer half and continue writing."
    )
    # Options that do not affect the text.
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: Literal["in_memory", "in-memory", "24h"] | None = None
    prompt_cache_options: dict[str, str] | None = None
    metadata: Metadata | None = None
    # Unsupported options, with the values that have no effect.
    best_of: Count = Field(None, ge=1, description="Must equal `n`.")
    store: OnlyFalse | None = None
    service_tier: Literal["auto", "default"] | None = None
    # vLLM's unsupported options, likewise.
    ignore_eos: OnlyFalse | None = None
    include_stop_str_in_output: OnlyFalse | None = None
    use_beam_search: OnlyFalse | None = None
    truncate_prompt_tokens: Unset = None
    allowed_token_ids: Unset = None
    prompt_logprobs: Unset = None
    # Of chats, but sent with texts as well.
    tools: Unset = None
    tool_choice: Literal["none", "auto"] | None = None
    parallel_tool_calls: bool | None = None
    response_format: PlainText | None = None
    reasoning_effort: Literal["none"] | None = None
    verbosity: Literal["medium"] | None = None
    prediction: Unset = None
    audio: Unset = None
    web_search_options: Unset = None


class CompletionRequest(Writing):
    """OpenAI's text completion, without unsupported options, and with a few additional ones."""

    model_config = ConfigDict(json_schema_extra={"allOf": [NEEDS_STREAM]})

    prompt: Prompts = Field(description="One text or list of token ids, or several of either.")
    max_tokens: Count = Field(
        DEFAULT_MAX_TOKENS,
        ge=0,
        description="With 0 the prompt is read but nothing is written, for `echo` with `logprobs`.",
    )
    logprobs: Count = Field(None, ge=0, le=MAX_TOP_LOGPROBS)
    echo: bool | None = False
    suffix: Unset = None


class TextPart(BaseModel):
    """A text part of a message; no other kind is supported."""

    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["text"]
    text: str
    prompt_cache_breakpoint: dict[str, str] | None = None  # does not affect the text


TextParts = TypeAliasType("TextParts", Annotated[list[TextPart], FailFast()])


class Message(BaseModel):
    """A turn of a conversation. Content other than text is refused."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra=NEEDS_CONTENT)

    role: Literal["system", "developer", "user", "assistant"]
    content: str | TextParts | None = None
    name: str | None = None
    # What answers have in addition, as long as it is empty: OpenAI's fields, vLLM's, litellm's.
    refusal: Unset = None
    annotations: Unset = None
    audio: Unset = None
    function_call: Unset = None
    tool_calls: Unset = None
    reasoning: Unset = None
    reasoning_content: Unset = None
    provider_specific_fields: UnsetObject = None

    @model_validator(mode="after")
    def check_content(self) -> Self:
        if self.content is None and self.role != "assistant":
            raise PydanticCustomError("no_content", "Only the assistant's messages may be without content")
        return self

    @property
    def text(self) -> str:
        if self.content is None:
            return ""
        return self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)


Messages = Annotated[list[Message], FailFast(), Field(min_length=1)]


def as_conversation(messages: Sequence[Message]) -> Conversation:
    return [{"role": message.role, "content": message.text} for message in messages]


class ChatRequest(Writing):
    """OpenAI's chat completion, without unsupported options, and with a few additional ones."""

    model_config = ConfigDict(json_schema_extra={"allOf": [NEEDS_STREAM, NEEDS_LOGPROBS]})

    messages: Messages
    max_tokens: Count = Field(
        None, ge=1, description="The maximum number of tokens to write; by default, as many as fit into the context."
    )
    logprobs: bool | None = False
    top_logprobs: Count = Field(None, ge=0, le=MAX_TOP_LOGPROBS)
    chat_template_kwargs: TemplateOptions | None = Field(
        None, description="Further variables of the model's chat template, such as `enable_thinking`."
    )
    # Unsupported options, with the values that have no effect.
    modalities: list[Literal["text"]] | None = None
    functions: Unset = None
    function_call: Literal["none", "auto"] | None = None
    moderation: Unset = None


class EmbeddingsRequest(Body):
    """OpenAI's embeddings. A vector is the mean of the last hidden states, after the final norm."""

    input: Prompts = Field(description="One text or list of token ids, or several of either.")
    encoding_format: Literal["float", "base64"] | None = "float"
    # Unsupported options, with the one value that has no effect.
    dimensions: Unset = None
    user: str | None = None


class AttentionRequest(Body):
    """A request for the attention weights of the text ``prompt`` or of ``tokens``."""

    model_config = ConfigDict(json_schema_extra=ONE_TEXT)

    prompt: Annotated[str, Also(minLength=1)] | None = None
    tokens: TokenIds | None = Field(None, description="Token ids, instead of a prompt.")
    layers: Indices | None = Field(None, description="Counted from 0; all by default.")
    heads: Indices | None = Field(None, description="Counted from 0; all by default.")
    head_mask: HeadMask | None = Field(None, description=HEAD_MASK.help)
    format: Literal["json", "safetensors"] | None = "json"


class ActivationsRequest(Body):
    """A request for the activations of the text ``prompt`` or of ``tokens``, as a safetensors file."""

    model_config = ConfigDict(json_schema_extra=ONE_TEXT)

    prompt: Annotated[str, Also(minLength=1)] | None = None
    tokens: TokenIds | None = Field(None, description="Token ids, instead of a prompt.")
    sites: SiteNames = Field(
        description=f"The sites to read: {', '.join(SITES)}, or the names of TransformerLens's hooks."
    )
    layers: Indices | None = Field(None, description="Counted from 0; all by default.")
    positions: Indices | None = Field(None, description="The positions to read, counted from 0; all by default.")
    head_mask: HeadMask | None = Field(None, description=HEAD_MASK.help)


class TokenizeRequest(Body):
    """vLLM's request for the tokens of ``prompt``, or of a conversation as the model would read it."""

    model_config = ConfigDict(json_schema_extra=ONE_SOURCE)

    prompt: str = ""
    messages: Messages = Field(default_factory=list)
    add_generation_prompt: bool = Field(
        True, description="End the conversation's prompt at the start of the assistant's turn."
    )
    add_special_tokens: bool | None = Field(
        None,
        description="Begin with the tokens that come before every prompt of the model, such as <s>, if it has any. "
        "By default true, but false for a conversation, which begins as the chat template says.",
    )
    chat_template_kwargs: TemplateOptions | None = None
    return_token_strs: bool | None = Field(False, description="Also return the text of each token.")


class DetokenizeRequest(Body):
    """vLLM's request for the text of ``tokens``."""

    tokens: AnyTokenIds
