"""What a visitor wants to train, checked. Everything here raises ``InputError``."""

from dataclasses import dataclass

from model import InputError
from model.errors import counted, shorten

from ..serving.inputs import UnknownModel
from ..serving.served_models import ServedModels
from ..settings import MAX_TRAINING_ALPHABET, MIN_TRAINING_CHARACTERS, TRAINING_CHARACTERS, Limits
from .sizes import Size, offered


@dataclass(frozen=True)
class TrainingAsk:
    """A size, and the text to learn from or the model that writes it first."""

    size: Size
    text: str | None = None
    writer: str | None = None
    n_characters: int = 0  # of the text, or that the model is to write

    @property
    def about(self) -> str:
        """The data, for the model card."""
        if self.text is not None:
            return f"A text of {counted(self.n_characters, 'character')} that a visitor of Headscope chose."
        return f"{self.n_characters:,} characters that the model {self.writer} wrote."


def read_size(limits: Limits, name: object) -> Size:
    """The size of that name, if it is offered here."""
    sizes = {size.name: size for size in offered(limits)}
    if not isinstance(name, str) or name not in sizes:
        raise InputError("size", f"There is no size {shorten(name)}. Available: {', '.join(sizes)}")
    return sizes[name]


def ask_with_text(limits: Limits, size: object, data: bytes) -> TrainingAsk:
    """To train on a text in UTF-8."""
    chosen = read_size(limits, size)
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
        raise InputError(
            "text", f"The text has {found}; to learn from it, at least {MIN_TRAINING_CHARACTERS:,} are needed."
        )
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
    return TrainingAsk(chosen, text=text, n_characters=len(text))


def ask_with_writer(served: ServedModels, size: object, writer: object) -> TrainingAsk:
    """To train on what one of everybody's models writes first."""
    chosen = read_size(served.settings.limits, size)
    if not isinstance(writer, str) or writer not in served.shared:
        raise UnknownModel(f"There is no model {shorten(writer)}. Available: {', '.join(served.shared)}")
    return TrainingAsk(chosen, writer=writer, n_characters=TRAINING_CHARACTERS)
