"""How large a GPT a visitor can train, and what that costs."""

from dataclasses import asdict, dataclass

from model import GPTConfig

from ..settings import Limits

TYPICAL_ALPHABET = 65  # characters of an English text, to say how many weights a model will have


@dataclass(frozen=True)
class Size:
    """A shape, and the seconds for which it is trained."""

    name: str
    n_layer: int
    n_head: int
    n_embd: int
    context_length: int
    batch_size: int
    seconds: int
    enough: int = 0  # characters of a text; with fewer, the held-out loss rises before the time is over

    def n_parameters(self, vocab_size: int) -> int:
        """The number of weights with a vocabulary of that size."""
        return GPTConfig(
            n_layer=self.n_layer,
            n_head=self.n_head,
            n_embd=self.n_embd,
            vocab_size=vocab_size,
            context_length=self.context_length,
        ).n_parameters


SIZES = (
    Size("small", n_layer=2, n_head=4, n_embd=64, context_length=64, batch_size=24, seconds=20, enough=50_000),
    Size("medium", n_layer=3, n_head=4, n_embd=96, context_length=64, batch_size=24, seconds=60, enough=100_000),
    Size("large", n_layer=4, n_head=6, n_embd=144, context_length=128, batch_size=16, seconds=180, enough=300_000),
)


def offered(limits: Limits) -> list[Size]:
    """The sizes within the limits of this server."""
    return [size for size in SIZES if size.n_parameters(TYPICAL_ALPHABET) <= limits.max_training_weights]


def seconds_of(size: Size, limits: Limits) -> int:
    """For how long a size is trained here."""
    return min(size.seconds, limits.max_training_seconds)


def describe_sizes(limits: Limits) -> list[dict[str, object]]:
    """The sizes as the page shows them."""
    return [
        asdict(size) | {"seconds": seconds_of(size, limits), "n_parameters": size.n_parameters(TYPICAL_ALPHABET)}
        for size in offered(limits)
    ]
