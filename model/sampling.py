"""From logits to the next token: pure functions, applied in one documented order.

Logit bias and penalties, temperature, top-k, top-p, min-p, renormalise, one uniform draw. Temperature 0 takes the
largest of the penalised logits. Everything is computed in float64, so that another implementation of the same order
(the page's, in JavaScript numbers) agrees.
"""

import hashlib
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .config import is_number

MAX_TEMPERATURE = 100.0
MAX_LOGIT_BIAS = 100.0
TOP_P_FIRST = 1024  # tokens that keep_top_p sorts before it sorts them all: nearly always enough, and much faster


@dataclass(frozen=True, kw_only=True)
class SamplingSettings:
    """How the next token is drawn. Raises ``ValueError`` that names the setting, what was found and what is allowed."""

    temperature: float = 1.0  # 0 takes the most probable token
    top_k: int | None = None  # keep the k largest logits, and those equal to the smallest of them
    top_p: float = 1.0  # keep the fewest tokens whose probabilities reach this sum (Holtzman et al. 2020)
    min_p: float = 0.0  # keep tokens at least this fraction as probable as the most probable one
    presence_penalty: float = 0.0  # subtracted once from the logit of each token already written
    frequency_penalty: float = 0.0  # subtracted for every time the token was written
    repetition_penalty: float = 1.0  # divides positive and multiplies negative logits of tokens read or written
    logit_bias: Mapping[int, float] = field(default_factory=dict)  # added to the logit of a token id

    def __post_init__(self) -> None:
        check_range("temperature", self.temperature, 0.0, MAX_TEMPERATURE)
        if self.top_k is not None and (type(self.top_k) is not int or self.top_k < 1):
            raise ValueError(f"top_k must be an integer of at least 1, or None for all tokens, found {self.top_k!r}")
        if not is_number(self.top_p) or not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1, found {self.top_p!r}")
        check_range("min_p", self.min_p, 0.0, 1.0)
        check_range("presence_penalty", self.presence_penalty, -2.0, 2.0)
        check_range("frequency_penalty", self.frequency_penalty, -2.0, 2.0)
        check_range("repetition_penalty", self.repetition_penalty, 0.01, 100.0)
        if not isinstance(self.logit_bias, Mapping):
            raise ValueError(f"logit_bias must map token ids to numbers, found {self.logit_bias!r}")
        for token_id, bias in self.logit_bias.items():
            if type(token_id) is not int or token_id < 0:
                raise ValueError(f"logit_bias names token ids, integers of at least 0, found {token_id!r}")
            check_range(f"logit_bias of token {token_id}", bias, -MAX_LOGIT_BIAS, MAX_LOGIT_BIAS)

    @property
    def has_penalties(self) -> bool:
        return bool(self.logit_bias or self.presence_penalty or self.frequency_penalty or self.repetition_penalty != 1)


def check_range(name: str, value: object, least: float, most: float) -> None:
    """Raise ``ValueError`` unless ``value`` is a finite number from ``least`` to ``most``."""
    if not is_number(value) or not least <= value <= most:  # type: ignore[operator]
        raise ValueError(f"{name} must be a number from {least:g} to {most:g}, found {value!r}")


def random_generator(seed: int, prompt: int = 0, choice: int = 0) -> random.Random:
    """The generator of choice ``choice`` of prompt ``prompt``: its own, and the same on every machine."""
    digest = hashlib.sha256(f"{seed}:{prompt}:{choice}".encode()).digest()
    return random.Random(int.from_bytes(digest[:8], "big"))


def penalise(logits: Tensor, settings: SamplingSettings, prompt: Sequence[int], written: Sequence[int]) -> Tensor:
    """Apply the logit bias and the penalties to float64 ``logits`` ``(vocab_size,)``; all ids are below that."""
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
        before = torch.nn.functional.pad(ordered.cumsum(-1)[:-1], (1, 0))  # the sum in front of each token
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
    """What the next token is drawn from: float64 ``(vocab_size,)``, summing to 1.

    ``logits`` ``(vocab_size,)`` are the model's own; ``prompt`` and ``written`` are the token ids read and written so
    far, which only the penalties look at.
    """
    logits = logits.double()
    if settings.has_penalties:
        logits = penalise(logits, settings, prompt, written)
    if settings.temperature == 0:
        return torch.nn.functional.one_hot(logits.argmax(), len(logits)).double()
    if settings.temperature != 1:
        logits = (logits - logits.max()) / settings.temperature  # shifted first: a tiny temperature must not overflow
    if settings.top_k is not None and settings.top_k < len(logits):
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
    """Draw the next token id from ``logits`` ``(vocab_size,)``: the inverse of the cumulative sum at one uniform.

    Raises ``FloatingPointError`` where the logits are no numbers, as those of weights too large for their precision.
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


def check_finite(number: Tensor) -> None:
    """Raise ``FloatingPointError`` for NaN or infinity, either of which one bad logit gives."""
    if not number.isfinite():
        raise FloatingPointError("the model's logits hold NaN or infinity, so that no next token can be drawn")
