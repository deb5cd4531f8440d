"""Body and answer of the question where each head fires."""

from pydantic import BaseModel, Field

from .schema import ModelAnswer, ModelBody


class PassagesBody(ModelBody):
    """A question about a text that may be much longer than the context."""

    text: str = Field(description="It is read in windows; the model must know all of its characters.")


class Passage(BaseModel):
    """Positions are those in the text."""

    value: float
    query: int
    key: int = Field(description="The token with the largest weight, the first of the window apart.")
    window: int = Field(description="Index in `windows`.")


class Measured(BaseModel):
    histogram: list[int] = Field(description="Of all queries, by value; `bins` has the edges.")
    passages: list[Passage] = Field(description="The strongest first; one in 32 consecutive queries at most.")
    share: list[int] = Field(description="How many of the passages have each of the `patterns`.")


class HeadPassages(BaseModel):
    weight: Measured = Field(description="By the largest attention weight off the first token.")
    norm: Measured = Field(description="By the norm of the head's output.")
    everywhere: list[float] = Field(description="The share of all queries that have each of the `patterns`.")
    metrics: list[float] = Field(description="`metrics` of the head, averaged over the queries.")


class Bins(BaseModel):
    weight: list[float]
    norm: list[float]


class TextWindow(BaseModel):
    start: int
    tokens: list[int]


class HeadMap(BaseModel):
    """Principal components of the heads' metrics and patterns, each of them standardised."""

    points: list[list[tuple[float, float]]] = Field(description="`[layer][head]`.")
    explained: tuple[float, float] = Field(description="The share of the variance along each axis.")
    features: list[str]
    axes: list[list[float]] = Field(description="How much each of the `features` counts on each axis.")


class PassagesAnswer(ModelAnswer):
    n_tokens: int
    patterns: list[str]
    metrics: list[str]
    bins: Bins
    heads: list[list[HeadPassages]] = Field(description="`[layer][head]`.")
    windows: list[TextWindow] = Field(description="Those that a passage is from.")
    texts: dict[int, str] = Field(description="The text of each token in `windows`, by its id.")
    map: HeadMap
