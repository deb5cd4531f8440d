"""Where each head fires in a long text, what these passages have in common, and a map that groups similar heads."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Literal, NamedTuple, TypedDict, get_args

import torch
from torch import Tensor
from torch.nn import functional as F

from ..drawing.heat_map import Part, in_context
from ..drawing.metrics import METRICS, metric_sums
from ..errors import InputError
from ..gpt import GPT, Block
from ..tokenizer import Tokenizer, token_text
from .answer import Answer, SentAs, Shape
from .lens import Lens
from .progress import Progress, ignore, part
from .question import LongText

WINDOW = 256  # maximum number of tokens read at once, which bounds the memory for any context and text
OVERLAP = 4  # a quarter of each window repeats the one before, so that every query has earlier tokens to look at
MIN_DISTANCE = 32  # of this many consecutive queries, only the strongest becomes a passage
N_PASSAGES = 12  # per head
N_BINS = 24
SHOWN_TOKENS = 12  # of a passage, in a table
MIN_NORM, BINS_PER_DOUBLING = 2.0**-8, 2  # the norms' histogram runs from 2**-8 to 2**4 in half doublings

Pair = tuple[float, float]
QUOTES = frozenset("\"'\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb")  # straight, curly, low, angular

# How strongly a head fires at a query: its largest weight on any token but the first, or the norm of its output.
Measure = Literal["weight", "norm"]
FIRING_MEASURES: tuple[Measure, ...] = get_args(Measure)


@dataclass(frozen=True)
class TokenMarks:
    """The kind and the word of each token of a text, as tensors ``(N,)``."""

    ids: Tensor
    word: Tensor  # index of the word, from 1; white space belongs to the word before it
    has_text: Tensor  # contains anything except white space
    line_break: Tensor
    line_start: Tensor  # the first token of the text or after a line break
    quote: Tensor
    capital: Tensor
    punctuation: Tensor


PATTERNS = (
    "itself",
    "previous_token",
    "same_token",
    "after_same_token",
    "same_word",
    "previous_word",
    "line_start",
    "line_break",
    "quote",
    "capital",
    "punctuation",
    "from_line_start",
)


def patterns(marks: TokenMarks, query: Tensor, key: Tensor) -> Tensor:
    """Which of ``PATTERNS`` hold for each query and key, given as positions ``(...)``: ``(..., len(PATTERNS))`` bool.

    - itself, previous_token: the key is the query itself, or the token before it;
    - same_token, after_same_token: the key is an earlier occurrence of the query's token, or the token that followed
      one;
    - same_word, previous_word: the key is an earlier token of the query's word, or is in the word before;
    - line_start, line_break, quote, capital, punctuation: the kind of the key, for any query;
    - from_line_start: the query is the first token of its line, for any key.
    """
    earlier, words_back = key < query, marks.word[query] - marks.word[key]
    both_text = marks.has_text[query] & marks.has_text[key]
    same = marks.ids[query]
    masks = {
        "itself": key == query,
        "previous_token": key == query - 1,
        "same_token": earlier & (marks.ids[key] == same),
        "after_same_token": earlier & (key > 0) & (marks.ids[(key - 1).clamp_min(0)] == same),
        "same_word": earlier & both_text & (words_back == 0),
        "previous_word": both_text & (words_back == 1),
        "line_start": marks.line_start[key],
        "line_break": marks.line_break[key],
        "quote": marks.quote[key],
        "capital": marks.capital[key],
        "punctuation": marks.punctuation[key],
        "from_line_start": marks.line_start[query],
    }
    return torch.stack([masks[name] for name in PATTERNS], -1)


def read_long_text(tokenizer: Tokenizer, text: str) -> list[int]:
    """The ids of a text of any length. Raises ``InputError`` for the field ``text``."""
    try:
        ids = tokenizer.encode(text)
    except InputError as error:
        raise error.about("text") from None
    if len(ids) < 2:
        raise InputError("text", "The text must have at least two tokens, so that one can attend to another.")
    return ids


def mark_tokens(tokenizer: Tokenizer, ids: Sequence[int]) -> TokenMarks:
    """The marks of every token of a text."""
    tokens = torch.tensor(ids)
    known, place = tokens.unique(return_inverse=True)
    texts = [token_text(tokenizer, token_id) for token_id in known.tolist()]

    def mark(holds: Callable[[str], bool]) -> Tensor:
        return torch.tensor([holds(text) for text in texts])[place]

    has_text = mark(lambda text: not text.isspace() and text != "")
    opens, closes = mark(lambda text: text[:1].isspace()), mark(lambda text: text[-1:].isspace())
    line_break = mark(lambda text: "\n" in text)
    begins_word = has_text & (opens | F.pad(closes[:-1], (1, 0), value=True))
    return TokenMarks(
        ids=tokens,
        word=begins_word.cumsum(0),
        has_text=has_text,
        line_break=line_break,
        line_start=F.pad(line_break[:-1], (1, 0), value=True),
        quote=mark(lambda text: bool(text.strip()) and set(text.strip()) <= QUOTES),
        capital=mark(lambda text: text.strip()[:1].isupper()),
        punctuation=mark(lambda text: bool(text.strip()) and not any(map(str.isalnum, text))),
    )


class Passage(TypedDict):
    """All positions are positions in the whole text."""

    value: float
    query: int
    key: Annotated[int, "The token with the largest weight, apart from the first of the window."]
    window: Annotated[int, "Index in `windows`."]


class Measured(TypedDict):
    histogram: Annotated[list[int], "The number of queries per bin of the value; `bins` has the edges."]
    passages: Annotated[list[Passage], "The strongest first; at most one within 32 consecutive queries."]
    share: Annotated[list[int], "How many of the passages show each of the `patterns`."]


class HeadPassages(TypedDict):
    weight: Annotated[Measured, "Measured by the largest attention weight, not counting the first token."]
    norm: Annotated[Measured, "Measured by the norm of the head's output."]
    everywhere: Annotated[list[float], "The share of all queries that show each of the `patterns`."]
    metrics: Annotated[list[float], "The head's `metrics`, averaged over all queries."]


class Bins(TypedDict):
    weight: list[float]
    norm: list[float]


class TextWindow(TypedDict):
    start: int
    tokens: list[int]


@dataclass(frozen=True)
class HeadMap(Answer):
    """Principal components of the heads' metrics and patterns, each feature standardised.

    ``axes`` are unit vectors in standardised features.
    """

    points: Annotated[Tensor, Shape(("n_layer", "n_head", "2")), SentAs(list[list[Pair]]), "`[layer][head]`."]
    explained: Annotated[Tensor, Shape(("2",)), SentAs(Pair), "The share of the variance along each axis."]
    axes: Annotated[Tensor, Shape(("2", "features")), "The weight of each of the `features` on each axis."]
    features: tuple[str, ...] = (*METRICS, *PATTERNS)


class PassagesContent(TypedDict):
    n_tokens: int
    patterns: tuple[str, ...]
    metrics: tuple[str, ...]
    bins: Bins
    heads: Annotated[list[list[HeadPassages]], "`[layer][head]`."]
    windows: Annotated[list[TextWindow], "The windows that contain a passage."]
    texts: Annotated[dict[str, str], SentAs(dict[int, str]), "The text of each token in `windows`, by token id."]
    map: HeadMap


PER_PASSAGE = Shape(("n_layer", "n_head", "passages"))


@dataclass(frozen=True)
class Strongest(Answer):
    """The queries at which each head fires most strongly, strongest first. Positions are those in the whole text."""

    value: Annotated[
        Tensor, PER_PASSAGE, "How strongly the head fires; 0 if the text is too short for another passage."
    ]
    query: Annotated[Tensor, PER_PASSAGE, "The position of the query."]
    key: Annotated[Tensor, PER_PASSAGE, "The position of the token with the largest weight apart from the first."]
    window: Annotated[Tensor, PER_PASSAGE, "The position at which the window that was read starts."]
    histogram: Annotated[Tensor, Shape(("n_layer", "n_head", "bins")), "The number of queries, by value."]


@dataclass(frozen=True)
class Firing(Answer):
    """For each head its strongest passages, a histogram and the patterns that the passages share; and a map of all
    heads.

    The result of ``firing`` for the tokens of ``marks``, read ``window_size`` at a time.

    ``strongest[measure]`` holds the passages. ``everywhere`` ``(n_layer, n_head, len(PATTERNS))`` is the share of all
    queries for which each pattern holds with the key they attend to most, excluding the first token. ``metrics``
    ``(n_layer, n_head, len(METRICS))`` are the means of the metrics in ``model.drawing.metrics``.
    """

    marks: TokenMarks
    window_size: int
    strongest: dict[Measure, Strongest]
    everywhere: Annotated[
        Tensor, Shape(("n_layer", "n_head", "patterns")), "The share of all queries that show each of `PATTERNS`."
    ]
    metrics: Annotated[Tensor, Shape(("n_layer", "n_head", "metrics")), "The mean over all queries of each metric."]

    @property
    def summary(self) -> str:
        return f"{len(self.marks.ids):,} tokens. The strongest weight is that of {self.peak(self.firsts)}."

    @property
    def firsts(self) -> Tensor:
        """The largest weight of each head, ``(n_layer, n_head)``."""
        return self.strongest["weight"].value[..., 0]

    def drawn(self) -> Iterator[Part]:
        """Of each head the passage with the largest weight, and where it looks in general."""
        strongest, patterns = self.strongest["weight"], self.everywhere.max(-1)
        rows = []
        for layer, head in product(*map(range, self.firsts.shape)):
            query, key = int(strongest.query[layer, head, 0]), int(strongest.key[layer, head, 0])
            first = max(0, query - SHOWN_TOKENS + 1)
            tokens = self.token_texts(self.marks.ids[first : query + 1])
            rows.append(
                {
                    "head": f"L{layer} H{head}",
                    "weight": float(self.firsts[layer, head]),
                    "query": query,
                    "key": key,
                    "looks at": self.token_texts(int(self.marks.ids[key])),
                    "passage up to the query": in_context(tokens, len(tokens) - 1),
                    "pattern": PATTERNS[int(patterns.indices[layer, head])].replace("_", " "),
                    "share": float(patterns.values[layer, head]),
                }
            )
        yield Part("strongest weight", rows, help="One passage of each head, and the pattern of most of its queries.")

    @property
    def map(self) -> HeadMap:
        """The heads by how they behave."""
        return head_map(torch.cat([self.metrics, self.everywhere], -1))

    def content(self) -> PassagesContent:
        ids = self.marks.ids.tolist()
        starts = sorted({int(start) for each in self.strongest.values() for start in each.window.flatten()})
        shown = [(start, ids[start : start + self.window_size]) for start in starts]
        used = sorted({token_id for _, tokens in shown for token_id in tokens})
        return {
            "n_tokens": len(ids),
            "patterns": PATTERNS,
            "metrics": METRICS,
            "bins": {"weight": bin_edges("weight"), "norm": bin_edges("norm")},
            "heads": self.by_head({start: index for index, start in enumerate(starts)}),
            "windows": [{"start": start, "tokens": tokens} for start, tokens in shown],
            "texts": {str(token["id"]): token["text"] for token in self.named(used)},
            "map": self.map,
        }

    def by_head(self, index_of: Mapping[int, int]) -> list[list[HeadPassages]]:
        """``[layer][head]``; ``index_of`` gives the index of a window by its start."""
        shares = {measure: pattern_counts(each, self.marks) for measure, each in self.strongest.items()}

        def measured(measure: Measure, layer: int, head: int) -> Measured:
            strongest = self.strongest[measure]
            columns = (strongest.value, strongest.query, strongest.key, strongest.window)
            rows = zip(*(column[layer, head].tolist() for column in columns), strict=True)
            return {
                "histogram": strongest.histogram[layer, head].tolist(),
                "passages": [
                    {"value": value, "query": query, "key": key, "window": index_of[start]}
                    for value, query, key, start in rows
                    if value > 0
                ],
                "share": shares[measure][layer, head].tolist(),
            }

        n_layer, n_head = self.everywhere.shape[:2]
        return [
            [
                {
                    "weight": measured("weight", layer, head),
                    "norm": measured("norm", layer, head),
                    "everywhere": self.everywhere[layer, head].tolist(),
                    "metrics": self.metrics[layer, head].tolist(),
                }
                for head in range(n_head)
            ]
            for layer in range(n_layer)
        ]


class Window(NamedTuple):
    """Tokens ``start`` to ``stop - 1`` are read together; the queries from ``first`` on are new."""

    start: int
    first: int
    stop: int


def windows(n_tokens: int, context_length: int) -> Iterator[Window]:
    """Windows of at most ``WINDOW`` tokens in which every token of a text is a new query exactly once."""
    size = min(WINDOW, context_length)
    first = 0
    while first < n_tokens:
        start = max(0, first - size // OVERLAP)
        stop = min(start + size, n_tokens)
        yield Window(start, first, stop)
        first = stop


def passages(lens: Lens, text: LongText, *, progress: Progress = ignore) -> Firing:
    """Where in a long text each head acts most strongly, and a map of heads that behave alike.

    See ``firing``.
    """
    ids = read_long_text(lens.tokenizer, text)
    return firing(lens.gpt, mark_tokens(lens.tokenizer, ids), progress=part(progress, 0, 0.99))


@torch.no_grad()
def firing(gpt: GPT, marks: TokenMarks, *, progress: Progress = ignore) -> Firing:
    """Read a text of any length in windows, and keep for each head the queries at which it fires most strongly.

    There are two measures: the largest attention weight excluding the window's first token (an attention sink for many
    heads), and the norm of the head's output, ``||context W_O||``. Each window is read without the text before it.
    Memory use does not grow with the text.
    """
    config = gpt.config
    n_layer, n_head, n_tokens = config.n_layer, config.n_head, len(marks.ids)
    kept = {measure: no_passages(n_layer, n_head) for measure in FIRING_MEASURES}
    everywhere = torch.zeros(n_layer, n_head, len(PATTERNS), dtype=torch.float64)
    metrics = torch.zeros(n_layer, n_head, len(METRICS), dtype=torch.float64)
    squares = [output_squares(block) for block in gpt.blocks]
    n_measured = 0
    for window in windows(n_tokens, config.context_length):
        new = slice(window.first - window.start, None)
        weight, key, norm = [], [], []
        for layer, (attention, context) in enumerate(read_window(gpt, marks.ids[window.start : window.stop])):
            rows, vectors = attention[:, new].cpu(), context[:, new]
            metrics[layer] += metric_sums(rows, window.first - window.start)
            largest, place = F.pad(rows[..., 1:], (0, 1)).max(-1)  # padded, as a text may be one token long
            weight.append(largest)
            key.append(place + 1 + window.start)
            norm.append(((vectors @ squares[layer]) * vectors).sum(-1).clamp_min(0).sqrt().cpu())
        query = torch.arange(window.first, window.stop)
        strongest_key = torch.stack(key).minimum(query)  # for a query that sees only the first token: itself
        everywhere += patterns(marks, query.expand_as(strongest_key), strongest_key).sum(-2)
        for measure, value in zip(FIRING_MEASURES, (torch.stack(weight), torch.stack(norm)), strict=True):
            kept[measure] = keep_strongest(kept[measure], value, strongest_key, window, bin_indices(measure, value))
        n_measured += len(query) - (window.first == window.start)
        progress(window.stop / n_tokens)
    size = min(WINDOW, config.context_length)
    return Firing(marks, size, kept, (everywhere / n_tokens).float(), (metrics / max(n_measured, 1)).float())


def output_squares(block: Block) -> Tensor:
    """``W_O W_O^T`` of each head, ``(n_head, head_dim, head_dim)``: ``||z W_O||^2 = z (W_O W_O^T) z^T``.

    ``W_O`` is followed by any norm after attention, but for its division.
    """
    W_O = block.attention_adds(block.attn.matrices().W_O)
    return W_O @ W_O.mT


def read_window(gpt: GPT, ids: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Each layer's attention weights ``(n_head, T, T)`` and context vectors ``(n_head, T, head_dim)``.

    The context vectors are divided as a norm after attention divides them.
    """
    outputs: list[tuple[Tensor, Tensor]] = []

    def attend(block: Block, x: Tensor) -> Tensor:
        context, weights = block.attn.context(x, need_weights=True)
        assert weights is not None
        output = block.attn.output(context)
        outputs.append((weights[0], block.divided(context[0].transpose(0, 1), output[0])))
        return output

    x = gpt.embed(ids[None].to(gpt.device))
    for block in gpt.blocks:
        x = block(x, attend)
        yield outputs.pop()


def bin_indices(measure: Measure, value: Tensor) -> Tensor:
    """The bin of each value: equal steps for weights, half doublings for norms; the end bins take the rest."""
    if measure == "weight":
        place = value * N_BINS
    else:
        place = (value.clamp_min(1e-12).log2() - math.log2(MIN_NORM)) * BINS_PER_DOUBLING
    return place.floor().long().clamp(0, N_BINS - 1)


def bin_edges(measure: Measure) -> list[float]:
    """The edges of the bins, ``N_BINS + 1`` numbers; the first and last bin of norms have no outer limit."""
    if measure == "weight":
        return [place / N_BINS for place in range(N_BINS + 1)]
    return [MIN_NORM * 2 ** (place / BINS_PER_DOUBLING) for place in range(N_BINS + 1)]


def no_passages(n_layer: int, n_head: int) -> Strongest:
    query, key, window = torch.zeros(3, n_layer, n_head, N_PASSAGES, dtype=torch.long)
    counts = torch.zeros(n_layer, n_head, N_BINS, dtype=torch.long)
    return Strongest(torch.zeros(n_layer, n_head, N_PASSAGES), query, key, window, counts)


def keep_strongest(kept: Strongest, value: Tensor, key: Tensor, window: Window, bin_of: Tensor) -> Strongest:
    """``kept`` plus the new queries of a window, with values and keys ``(n_layer, n_head, queries)``."""
    n = value.shape[-1]
    padded = F.pad(value, (0, -n % MIN_DISTANCE), value=-1.0).unflatten(-1, (-1, MIN_DISTANCE))
    best, place = padded.max(-1)  # (n_layer, n_head, blocks)
    place = place + torch.arange(0, n, MIN_DISTANCE)
    new = (best, place + window.first, key.gather(-1, place), torch.full_like(place, window.start))
    old = (kept.value, kept.query, kept.key, kept.window)
    joined = [torch.cat(pair, -1) for pair in zip(old, new, strict=True)]
    order = joined[0].argsort(dim=-1, descending=True, stable=True)[..., :N_PASSAGES]
    value, query, key, start = (each.gather(-1, order) for each in joined)
    return Strongest(value, query, key, start, kept.histogram + F.one_hot(bin_of, N_BINS).sum(-2))


def pattern_counts(strongest: Strongest, marks: TokenMarks) -> Tensor:
    """In how many of each head's passages each pattern holds, ``(n_layer, n_head, len(PATTERNS))``."""
    matches = patterns(marks, strongest.query, strongest.key)
    return (matches & (strongest.value > 0)[..., None]).sum(-2)


def head_map(features: Tensor) -> HeadMap:
    """Project heads ``(n_layer, n_head, features)`` to the two directions in which they vary most.

    Principal component analysis (Pearson 1901) by a singular value decomposition. Each feature is standardised first,
    so its unit does not matter; a feature that is the same for all heads has no effect. The sign of an axis is
    arbitrary; it is chosen so that the largest entry is positive.
    """
    rows = features.double().flatten(0, 1)
    centred = rows - rows.mean(0)
    spread = centred.pow(2).mean(0).sqrt()
    rows = torch.where(spread > 1e-9, centred / spread.clamp_min(1e-9), 0.0)
    _, singular, axes = torch.linalg.svd(rows, full_matrices=False)
    missing = max(0, 2 - len(axes))
    axes = torch.cat([axes[:2], torch.zeros(missing, rows.shape[1], dtype=rows.dtype)])
    variances = torch.cat([singular.pow(2), torch.zeros(missing, dtype=rows.dtype)])
    largest = axes.gather(1, axes.abs().argmax(1, keepdim=True))
    axes = axes * torch.where(largest < 0, -1.0, 1.0)
    explained = variances[:2] / variances.sum().clamp_min(1e-12)
    return HeadMap((rows @ axes.T).unflatten(0, features.shape[:2]).float(), explained.float(), axes.float())
