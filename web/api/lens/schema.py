"""The bodies that the routes under ``/v1/lens/`` accept, and their answers as the OpenAPI document has them."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field
from typing_extensions import TypeAliasType

from ..schema import ONE_TEXT, Also, Body, HeadMask, TokenIds

MOST_HEADS = 4096
Place = Annotated[list[int], Field(min_length=2, max_length=2)]
Heads = TypeAliasType("Heads", Annotated[list[Place], FailFast(), Field(min_length=1, max_length=MOST_HEADS)])


def pairs(heads: list[list[int]]) -> list[tuple[int, int]]:
    """Layers and heads."""
    return [(layer, head) for layer, head in heads]


class ModelBody(Body):
    """A question about a model; sent as the query of a GET request."""

    stream: bool | None = Field(False, description="Send the progress, then the answer, as server-sent events.")


class TextBody(ModelBody):
    """A question about the text ``prompt``, or about ``tokens``."""

    model_config = ConfigDict(json_schema_extra=ONE_TEXT)

    prompt: Annotated[str, Also(minLength=1)] | None = None
    tokens: TokenIds | None = Field(None, description="Token ids, instead of a prompt.")
    head_mask: HeadMask | None = Field(None, description="`[layer][head]`: 1 keeps a head, 0 removes it.")


class KnockoutBody(TextBody):
    method: Literal["zero", "mean"] | None = Field(
        "zero", description="What replaces a head's context vectors: zeros, or their mean over this text."
    )
    per_token: bool | None = Field(False, description="Also send the change for every token.")


class RemovalBody(TextBody):
    heads: Heads = Field(description="The heads to remove together, each as `[layer, head]`.")
    method: Literal["zero", "mean"] | None = Field("zero", description="As for `knockout`.")


class AnswerToken(BaseModel):
    id: int
    text: str


class Precision(BaseModel):
    computed: str
    served: str
    largest_difference: float | None = Field(
        None,
        description="Where the model is served in another precision: the largest difference that this makes to the "
        "log-probability of any token of the text, in nats.",
    )


class ModelAnswer(BaseModel):
    model: str
    precision: Precision


class TextAnswer(ModelAnswer):
    tokens: list[AnswerToken]


class KnockoutAnswer(TextAnswer):
    method: str
    loss: float = Field(description="Nats per predicted token.")
    delta: list[list[float]] = Field(description="`[layer][head]`: the loss without the head, minus `loss`.")
    token_loss: list[float] | None = Field(None, description="Of the second token to the last, in nats.")
    token_delta: list[list[list[float]]] | None = Field(
        None, description="`[layer][head][token]`, from the second token to the last."
    )


class RemovalAnswer(TextAnswer):
    method: str
    heads: list[list[int]]
    loss: float = Field(description="Nats per predicted token.")
    delta: float = Field(description="The loss without these heads, minus `loss`.")
    token_loss: list[float] = Field(description="Of the second token to the last, in nats.")
    token_delta: list[float] = Field(description="The change for each of them.")


class RoleScores(BaseModel):
    previous_token: float
    first_token: float
    self: float
    duplicate_token: float
    induction: float
    copying: float = Field(
        description="The part of other tokens whose logits the head raises less than that of the token it looks at; "
        "by its weights, on a sample of tokens."
    )
    entropy: float = Field(description="In bits.")


class HeadRole(BaseModel):
    label: str = Field(description='Where it clearly looks, else "copying" if it clearly copies, else "no clear role".')
    scores: RoleScores = Field(description="Mean attention weights on random tokens that are repeated once.")
    baseline: RoleScores = Field(
        description="What uniform attention would score on the same texts, and for copying random weights."
    )


class RolesAnswer(ModelAnswer):
    threshold: float = Field(description="The least score of a clear role.")
    copying_threshold: float = Field(description="The least score of a head that is said to copy.")
    heads: list[list[HeadRole]] = Field(description="`[layer][head]`")
