"""From logits to the next token: pure functions, applied in one documented order.

Logit bias and penalties, temperature, top-k, top-p, min-p, renormalise, one uniform draw. Temperature 0 takes the
largest of the penalised logits. Everything is computed in float64, so that another implementation of the same order,
such as the page's in JavaScript, gives the same results.

The fields of ``SamplingSettings`` are the only table of sampling options: the HTTP schema, the page's controls, shared
links and all error messages take ranges, defaults and help from it.
"""

import hashlib
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, NoReturn

import torch
from torch import Tensor

from .config import is_number
from .errors import InvalidValue

MAX_LOGIT_BIAS = 100.0
MAX_TOP_K = 10_000_000
PLAIN_TEMPERATURE = 1e-3  # below it, float32 cannot hold the logits divided by the temperature
TOP_P_FIRST = 1024  # keep_top_p sorts this many tokens first: nearly always enough, and faster than sorting all


class Slider(NamedTuple):
    """The page's slider for an option: its range, narrower than what programs may use, and its initial value."""

    label: str
    least: float
    most: float
    step: float
    start: float


@dataclass(frozen=True)
class GenerationOption:
    """One generation option: its type, default, range and help, and its slider if the page has one."""

    kind: type[int] | type[float]
    default: float | None
    least: float
    most: float
    help: str
    slider: Slider | None = None
    above: bool = False  # whether ``least`` itself is excluded
    name: str = ""

    @property
    def allowed(self) -> str:
        """The values that may be given, in words."""
        noun = "an integer" if self.kind is int else "a number"
        span = f"above {self.least:g} and at most {self.most:g}"
        if not self.above:
            span = f"from {self.least:,g} to {self.most:,g}"
        return f"{noun} {span}" + (" or None" if self.default is None else "")

    def check(self, value: object) -> None:
        """Raise ``InvalidValue`` unless ``value`` has the right type and lies in the range."""
        if value is None and self.default is None:
            return
        fits = type(value) is int if self.kind is int else is_number(value)
        if not fits or not self.least <= value <= self.most or (self.above and value == self.least):  # type: ignore[operator]
            raise InvalidValue(self.name, value, self.allowed)


def option(
    kind: type[int] | type[float],
    default: float | None,
    least: float,
    most: float,
    help: str,
    slider: Slider | None = None,
    *,
    above: bool = False,
) -> Any:
    """A dataclass field that carries its ``GenerationOption``; ``options`` reads them back."""
    row = GenerationOption(kind, default, least, most, help, slider, above)
    return field(default=default, metadata={"option": row})


def options(table: type[Any]) -> dict[str, GenerationOption]:
    """The options of a dataclass by field name, in order."""
    rows = {each.name: each.metadata["option"] for each in fields(table) if "option" in each.metadata}
    return {name: replace(row, name=name) for name, row in rows.items()}


@dataclass(frozen=True, kw_only=True)
class SamplingSettings:
    """How the next token is drawn. Raises ``InvalidValue``, which names the option, what was found and what is allowed.

    Top-p keeps the smallest set of most probable tokens whose probabilities sum to at least ``top_p`` (Holtzman et al.
    2020).
    """

    # fmt: off
    temperature: float = option(
        float, 1.0, 0, 100, "0 always takes the most probable token; higher values write more freely.",
        Slider("temperature", 0, 2, 0.05, start=0.8))
    top_k: int | None = option(
        int, None, 0, MAX_TOP_K, "Sample only among this many of the most probable tokens, plus ties; 0 means all.",
        Slider("top-k (0 = all)", 0, 100, 1, start=0))
    top_p: float = option(
        float, 1.0, 0, 1, "Sample among the fewest most probable tokens whose probabilities reach this sum.",
        Slider("top-p", 0.05, 1, 0.05, start=1), above=True)
    min_p: float = option(
        float, 0.0, 0, 1, "Leave out tokens less than this fraction as probable as the most probable one.",
        Slider("min-p", 0, 1, 0.01, start=0))
    presence_penalty: float = option(
        float, 0.0, -2, 2, "Subtracted once from the logit of each token already written.")
    frequency_penalty: float = option(
        float, 0.0, -2, 2, "Subtracted from a token's logit for every time it was written.")
    repetition_penalty: float = option(
        float, 1.0, 0.01, 100, "Divides positive and multiplies negative logits of tokens already read or written.")
    # fmt: on
    logit_bias: Mapping[int, float] = field(default_factory=dict)  # added to the logit of a token id

    def __post_init__(self) -> None:
        for name, row in SAMPLING_OPTIONS.items():
            row.check(getattr(self, name))
        if not isinstance(self.logit_bias, Mapping):
            raise InvalidValue("logit_bias", self.logit_bias, "a map of token ids to numbers")
        for token_id, bias in self.logit_bias.items():
            if type(token_id) is not int or token_id < 0:
                raise InvalidValue("logit_bias", token_id, "a map of token ids, integers of at least 0, to numbers")
            if not is_number(bias) or abs(bias) > MAX_LOGIT_BIAS:
                allowed = f"numbers from {-MAX_LOGIT_BIAS:g} to {MAX_LOGIT_BIAS:g}"
                raise InvalidValue("logit_bias", {token_id: bias}, allowed)

    @property
    def has_penalties(self) -> bool:
        return bool(self.logit_bias or self.presence_penalty or self.frequency_penalty or self.repetition_penalty != 1)

    @property
    def is_plain(self) -> bool:
        """Whether only the temperature matters: any token can be drawn, or always the most probable one."""
        if self.temperature == 0:
            return not self.has_penalties
        cuts = self.top_k or self.top_p < 1 or self.min_p > 0
        return self.temperature >= PLAIN_TEMPERATURE and not cuts and not self.has_penalties


SAMPLING_OPTIONS = options(SamplingSettings)


def random_generator(seed: int, prompt: int = 0, choice: int = 0) -> random.Random:
    """A separate generator for each ``choice`` of each ``prompt``, the same on every machine."""
    digest = hashlib.sha256(f"{seed}:{prompt}:{choice}".encode()).digest()
    return random.Random(int.from_bytes(digest[:8], "big"))


def penalise(logits: Tensor, settings: SamplingSettings, prompt: Sequence[int], written: Sequence[int]) -> Tensor:
    """Apply the logit bias and the penalties to float64 ``logits`` ``(vocab_size,)``; all ids are below that size."""
    logits = logits.clone()
    for token_id, bias in settings.logit_bias.items():
        logits[token_id] += bias
    if settings.repetition_penalty != 1:
        seen = torch.tensor(sorted({*prompt, *written}), dtype=torch.long, device=logits.device)
        found = logits[seen]
        logits[seen] = torch.where(found > 0, found / settings.repetition_penalty, found * settings.repetition_penalty)
    if written and (settings.presence_penalty or settings.frequency_penalty):
        ids = torch.tensor(written, dtype=torch.long, device=logits.device)
        counts = torch.bincount(ids, minlength=len(logits)).to(logits.dtype)
        logits -= settings.frequency_penalty * counts + settings.presence_penalty * counts.clamp(max=1)
    return logits


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    """Set all but the ``k`` largest of ``logits`` ``(vocab_size,)`` to minus infinity; ties with the last stay."""
    smallest = torch.topk(logits, min(k, len(logits))).values[-1]
    return logits.masked_fill(logits < smallest, -torch.inf)


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    """Keep the most probable tokens until their probabilities sum to ``p``; of equal ones the lower id comes first."""
    probabilities = torch.softmax(logits, dim=-1)
    for size in (min(TOP_P_FIRST, len(logits)), len(logits)):
        ordered = torch.topk(probabilities, size).values
        before = torch.nn.functional.pad(ordered.cumsum(-1)[:-1], (1, 0))  # the sum before each token
        if before[-1] >= p:
            break
    kept = int((before < p).sum())
    least = ordered[kept - 1]
    equal = (probabilities == least).nonzero().flatten()
    dropped = equal[kept - int((probabilities > least).sum()) :]
    return logits.masked_fill(probabilities < least, -torch.inf).index_fill(0, dropped, -torch.inf)


def keep_min_p(logits: Tensor, p: float) -> Tensor:
    """Keep tokens at least ``p`` times as probable as the most probable one."""
    return logits.masked_fill(logits < logits.max() + math.log(p), -torch.inf)


def probabilities(
    logits: Tensor, settings: SamplingSettings, prompt: Sequence[int] = (), written: Sequence[int] = ()
) -> Tensor:
    """The distribution of the next token: float64 ``(vocab_size,)``, summing to 1.

    ``logits`` ``(vocab_size,)`` are the model's raw logits. ``prompt`` and ``written`` are the token ids read and
    written so far, which only the penalties use.
    """
    logits = logits.double()
    if settings.has_penalties:
        logits = penalise(logits, settings, prompt, written)
    if settings.temperature == 0:
        return torch.nn.functional.one_hot(logits.argmax(), len(logits)).double()
    if settings.temperature != 1:
        logits = (logits - logits.max()) / settings.temperature  # shifted first: a tiny temperature must not overflow
    if settings.top_k and settings.top_k < len(logits):
        logits = keep_top_k(logits, settings.top_k)
    if settings.top_p < 1:
        logits = keep_top_p(logits, settings.top_p)
    if settings.min_p > 0:
        logits = keep_min_p(logits, settings.min_p)
    return torch.softmax(logits, dim=-1)


def sample(
    logits: Tensor,
    settings: SamplingSettings,
    generator: random.Random,
    prompt: Sequence[int] = (),
    written: Sequence[int] = (),
) -> int:
    """Draw the next token id from ``logits`` ``(vocab_size,)``: invert the cumulative sum at one uniform draw.

    Raises ``FloatingPointError`` for NaN or infinite logits, which weights too large for their precision produce.
    """
    if settings.temperature == 0:
        if settings.has_penalties:
            logits = penalise(logits.double(), settings, prompt, written)
        check_finite(logits.max())
        return int(logits.argmax())
    cumulative = probabilities(logits, settings, prompt, written).cumsum(-1)
    check_finite(cumulative[-1])
    drawn = generator.random() * cumulative[-1]  # below the last sum, as random() is below 1
    return int(torch.searchsorted(cumulative, drawn, right=True))


def draw_tokens(probabilities: Tensor, generator: random.Random, n: int) -> Tensor:
    """``n`` token ids ``(n,)``, each drawn as ``sample`` draws it, from ``probabilities`` ``(vocab_size,)``."""
    uniform = torch.tensor([generator.random() for _ in range(n)], dtype=torch.float64)
    cumulative = probabilities.cpu().cumsum(-1)
    return torch.searchsorted(cumulative, uniform * cumulative[-1], right=True)


def check_finite(number: Tensor) -> None:
    """Raise ``FloatingPointError`` for NaN or infinity; a single bad logit makes the sum one of them."""
    if not number.isfinite():
        raise_not_finite()


def raise_not_finite() -> NoReturn:
    raise FloatingPointError("the model's logits contain NaN or infinity, so no next token can be drawn")


def token_logprobs(logits: Tensor, tokens: Sequence[int]) -> list[float]:
    """The natural logarithm of each token's probability under its row of the raw ``logits`` ``(n, vocab_size)``."""
    ids = torch.tensor(tokens, dtype=torch.long, device=logits.device)
    return logits.float().log_softmax(-1).gather(1, ids[:, None])[:, 0].tolist()


def top_logprobs(logits: Tensor, n: int) -> list[dict[int, float]]:
    """The ``n`` most probable tokens of each row of ``logits`` ``(rows, vocab_size)`` with their log-probabilities."""
    values, ids = logits.float().log_softmax(-1).topk(min(n, logits.shape[-1]))
    return [dict(zip(*row, strict=True)) for row in zip(ids.tolist(), values.tolist(), strict=True)]
