"""The question of where each head fires in a long text."""

from pydantic import BaseModel
from pydantic import Field as Described

from model.lens.passages import firing, mark_tokens, read_long_text
from model.lens.progress import Progress, part

from .inquiry import Answer, Inquiry
from .question import MAX_LONG_TEXT_BYTES, MODEL, BodyLimit, LongTextField, ModelAnswer, Question

# JSON escapes may triple the bytes of a text, and its token ids take more memory than its characters.
LONG_TEXT = BodyLimit(max_bytes=3 * MAX_LONG_TEXT_BYTES, budget_factor=8)


class Passage(BaseModel):
    """All positions are positions in the whole text."""

    value: float
    query: int
    key: int = Described(description="The token with the largest weight, apart from the first of the window.")
    window: int = Described(description="Index in `windows`.")


class Measured(BaseModel):
    histogram: list[int] = Described(description="The number of queries per bin of the value; `bins` has the edges.")
    passages: list[Passage] = Described(description="The strongest first; at most one within 32 consecutive queries.")
    share: list[int] = Described(description="How many of the passages show each of the `patterns`.")


class HeadPassages(BaseModel):
    weight: Measured = Described(description="Measured by the largest attention weight, not counting the first token.")
    norm: Measured = Described(description="Measured by the norm of the head's output.")
    everywhere: list[float] = Described(description="The share of all queries that show each of the `patterns`.")
    metrics: list[float] = Described(description="The head's `metrics`, averaged over all queries.")


class Bins(BaseModel):
    weight: list[float]
    norm: list[float]


class TextWindow(BaseModel):
    start: int
    tokens: list[int]


class HeadMap(BaseModel):
    """Principal components of the heads' metrics and patterns, each feature standardised."""

    points: list[list[tuple[float, float]]] = Described(description="`[layer][head]`.")
    explained: tuple[float, float] = Described(description="The share of the variance along each axis.")
    features: list[str]
    axes: list[list[float]] = Described(description="The weight of each of the `features` on each axis.")


class PassagesAnswer(ModelAnswer):
    n_tokens: int
    patterns: list[str]
    metrics: list[str]
    bins: Bins
    heads: list[list[HeadPassages]] = Described(description="`[layer][head]`.")
    windows: list[TextWindow] = Described(description="The windows that contain a passage.")
    texts: dict[int, str] = Described(description="The text of each token in `windows`, by token id.")
    map: HeadMap


def answer_passages(inquiry: Inquiry, progress: Progress) -> Answer:
    loaded = inquiry.loaded
    # Here, not in the event loop, since a long text takes a while.
    ids = read_long_text(loaded.tokenizer, inquiry.values["text"])
    answer = firing(inquiry.gpt, mark_tokens(loaded.tokenizer, ids), progress=part(progress, 0, 0.99))
    return answer.with_texts(loaded.tokenizer).to_arrays()


PASSAGES = Question(
    "passages",
    "Where in a long text each head acts most strongly, and a map of heads that behave alike.",
    [LongTextField("text", "The text to read, of up to a megabyte; the model must know all of its characters."), MODEL],
    "For each head its strongest passages, a histogram and the patterns that the passages share; and a map of "
    "all heads.",
    PassagesAnswer,
    answer_passages,
    body_limit=LONG_TEXT,
)
