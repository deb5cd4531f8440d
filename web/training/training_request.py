"""A request to train: the size of the model and its text, checked. Invalid ones raise ``InputError``."""

from dataclasses import asdict, dataclass
from typing import Any

from model import GPTConfig, InputError
from model.errors import counted, shorten
from model.train.settings import ARCHITECTURES

from ..serving.served_models import ServedModels, UnknownModel
from ..settings import Limits

MIN_TRAINING_CHARACTERS = 1_000  # of a text to learn from
MAX_TRAINING_ALPHABET = 4_096  # different characters in it
TRAINING_CHARACTERS = 200_000  # of a training text that a served model writes

TYPICAL_ALPHABET = 65  # different characters in an English text, to estimate the number of weights


@dataclass(frozen=True)
class Size:
    """The shape of a model, and its training time in seconds. Its weights are at most those of GPT-2's architecture."""

    name: str
    n_layer: int
    n_head: int
    n_embd: int
    context_length: int
    batch_size: int
    seconds: int
    enough: int = 0  # characters; on a shorter text the held-out loss rises before the time is over

    @property
    def shape(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("n_layer", "n_head", "n_embd", "context_length")}

    def n_parameters(self, vocab_size: int) -> int:
        """The number of weights with a vocabulary of that size."""
        return GPTConfig(vocab_size=vocab_size, **self.shape).n_parameters


SIZES = (
    Size("small", n_layer=2, n_head=4, n_embd=64, context_length=64, batch_size=12, seconds=20, enough=50_000),
    Size("medium", n_layer=3, n_head=4, n_embd=96, context_length=64, batch_size=24, seconds=60, enough=100_000),
    Size("large", n_layer=4, n_head=6, n_embd=144, context_length=128, batch_size=16, seconds=180, enough=300_000),
)


def offered(limits: Limits) -> list[Size]:
    """The sizes within the limits of this server."""
    return [size for size in SIZES if size.n_parameters(TYPICAL_ALPHABET) <= limits.max_training_weights]


def seconds_of(size: Size, limits: Limits) -> int:
    """The training time of a size on this server, in seconds."""
    return min(size.seconds, limits.max_training_seconds)


def describe_sizes(limits: Limits) -> list[dict[str, object]]:
    """The sizes as the page shows them."""
    return [
        asdict(size) | {"seconds": seconds_of(size, limits), "n_parameters": size.n_parameters(TYPICAL_ALPHABET)}
        for size in offered(limits)
    ]


@dataclass(frozen=True)
class TrainingRequest:
    """A size, and the text to learn from or the model that writes it first."""

    size: Size
    arch: str = "gpt2"
    text: str | None = None
    writer: str | None = None
    n_characters: int = 0  # in the text, given or to be written

    @property
    def about(self) -> str:
        """The data, for the model card."""
        if self.text is not None:
            return f"A text of {counted(self.n_characters, 'character')} that a visitor of Headscope chose."
        return f"{self.n_characters:,} characters that the model {self.writer} wrote."


def parse_size(limits: Limits, name: object) -> Size:
    """The size of that name, if it is offered here."""
    sizes = {size.name: size for size in offered(limits)}
    if not isinstance(name, str) or name not in sizes:
        raise InputError("size", f"There is no size {shorten(name)}. Available: {', '.join(sizes)}")
    return sizes[name]


def parse_arch(name: object) -> str:
    """The architecture of that name."""
    if not isinstance(name, str) or name not in ARCHITECTURES:
        message = f"There is no architecture {shorten(name)}. Available: {', '.join(ARCHITECTURES)}"
        raise InputError("arch", message)
    return name


def request_with_text(limits: Limits, size: object, arch: object, data: bytes) -> TrainingRequest:
    """A request to train on a text in UTF-8."""
    chosen, arch = parse_size(limits, size), parse_arch(arch)
    if len(data) > limits.max_training_bytes:
        message = f"The text has {len(data):,} bytes; at most {limits.max_training_bytes:,} are accepted."
        raise InputError("text", message)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("text", f"This is not a text in UTF-8: byte {error.start:,} cannot be read.") from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if len(text) < MIN_TRAINING_CHARACTERS:
        found = counted(len(text), "character")
        raise InputError("text", f"The text has {found}; at least {MIN_TRAINING_CHARACTERS:,} are needed for training.")
    n_different = len(set(text))
    if n_different > MAX_TRAINING_ALPHABET:
        message = f"The text has {n_different:,} different characters; at most {MAX_TRAINING_ALPHABET:,} are accepted."
        raise InputError("text", message)
    n_parameters = chosen.n_parameters(n_different)
    if n_parameters > limits.max_training_weights:
        message = (
            f"With the {n_different:,} different characters of this text the model would have {n_parameters:,} "
            f"weights; at most {limits.max_training_weights:,} are trained here. Choose a smaller size."
        )
        raise InputError("size", message)
    return TrainingRequest(chosen, arch, text=text, n_characters=len(text))


def request_with_writer(served: ServedModels, size: object, arch: object, writer: object) -> TrainingRequest:
    """A request to train on a text that a shared model writes first."""
    chosen, arch = parse_size(served.settings.limits, size), parse_arch(arch)
    if not isinstance(writer, str) or writer not in served.shared:
        raise UnknownModel(f"There is no model {shorten(writer)}. Available: {', '.join(served.shared)}")
    return TrainingRequest(chosen, arch, writer=writer, n_characters=TRAINING_CHARACTERS)
