"""The fields of a question's body: made from the options that the question declares, and checked against a model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from model import InputError, LoadedModel
from model.config import check_int
from model.errors import InvalidValue
from model.lens.alignment import check_same_tokens
from model.lens.prompts import COLUMNS, check_columns, in_row
from model.lens.question import LIKELIEST, REQUIRED, Option, Reads, Within
from model.lens.text_pass import heads_by_layer
from model.modules.head_tensors import Head

from ..serving.inputs import parse_ids
from ..settings import Limits

MAX_ROWS = 1_000
MAX_LONG_TEXT_BYTES = 1_000_000  # of a text in which Ask looks for the passages on which each head fires
TEXTS = (Reads.TEXT, Reads.OTHER_TEXT)
# The types that JSON has for what an option is read as, if Python's differ.
JSON_TYPES: dict[Reads | None, Any] = {
    Reads.TEXTS: list[str],
    Reads.HEADS: list[list[int]],
    Reads.NEURONS: list[list[int]],
    Reads.MODEL: str,
    Reads.ROWS: list[Any],
}

# The fields that are no options of a question.
PROMPT = Option("prompt", str, REQUIRED, "The text to read; it is not continued.", reads=Reads.TEXT)
MODEL = Option(
    "model",
    str,
    None,
    "The name of a served model, or a training step (NAME@STEP); the first model by default.",
    reads=Reads.MODEL,
)
HEAD_MASK = Option(
    "head_mask", list[list[float]], None, "`[layer][head]`: 1 keeps a head, 0 removes it.", reads=Reads.HEAD_MASK
)


@dataclass(frozen=True)
class RowsOption(Option):
    """Rows of prompts, as text or token ids. Each is read as a dictionary with the ids of its columns."""

    columns: Mapping[str, Option] = field(default_factory=lambda: COLUMNS)  # those that are read besides the prompt
    required: Sequence[str] = ("corrupted",)  # those of them that are needed


def ids_field(text: Option) -> str:
    """The field in which a text is given as token ids."""
    return "tokens" if text == PROMPT else f"{text.name}_tokens"


def is_head(option: Option) -> bool:
    """Whether an option is a single head, which JSON has as two numbers."""
    return bool(option.kind == Head)


def fields_of(option: Option) -> Sequence[Option]:
    """The fields of the body from which an option is read."""
    if option.reads in TEXTS:
        ids_help = f"Token ids, instead of `{option.name}`."
        return [
            replace(option, kind=str, default=None),
            Option(ids_field(option), list[int], None, ids_help),
        ]
    if is_head(option):
        layer, head = f"{option.name}_layer", f"{option.name}_head"
        helps = {layer: f"With `{head}`, {option.help[0].lower()}{option.help[1:]}", head: f"See `{layer}`."}
        bounds = {layer: Within(below="n_layer"), head: Within(below="n_head")}
        return [Option(name, int, option.default, helps[name], bounds[name]) for name in (layer, head)]
    return [replace(option, kind=JSON_TYPES.get(option.reads, option.kind))]


@dataclass(frozen=True)
class Subject:
    """The models, text and limits against which the values of fields are checked."""

    limits: Limits
    models: Mapping[str, LoadedModel]  # keyed by the field that names them
    n_tokens: int = 0  # of the prompt

    @property
    def loaded(self) -> LoadedModel:
        return self.models["model"]


def parse(option: Option, given: Mapping[str, Any], subject: Subject) -> Any:
    """The checked value of an option in the fields ``given``; null selects the default. Raises ``InputError``."""
    loaded, value = subject.loaded, given.get(option.name)
    match option.reads:
        case Reads.TEXT:
            return parse_text(option, given, subject, loaded)
        case Reads.OTHER_TEXT:
            return parse_other_text(option, given, subject)
        case Reads.HEAD_MASK:
            return loaded.parse_head_mask(value)
    if is_head(option):
        return parse_one_head(option, given, subject)
    if value is None:
        return option.default
    match option.reads:
        case Reads.ROWS:
            rows = option if isinstance(option, RowsOption) else RowsOption(**vars(option))
            return [parse_row(rows, index, row, subject) for index, row in enumerate(value)]
        case Reads.LONG_TEXT:
            return check_long_text(option.name, value)
        case Reads.TOKEN | Reads.OTHER_TOKEN:
            return parse_token(option, value, subject)
        case Reads.TEXTS:
            return [parse_ids(subject.limits, loaded, text, None, (option.name, option.name)) for text in value]
        case Reads.HEADS | Reads.NEURONS:
            pairs = [(layer, index) for layer, index in value]
            if option.reads == Reads.HEADS:
                heads_by_layer(loaded.config, pairs)
            return pairs
    return check_bounds(option, value, subject)


def check_bounds(option: Option, value: Any, subject: Subject) -> Any:
    below = option.within.below
    if below is not None and isinstance(value, int):
        bound = subject.n_tokens if below == "n_tokens" else getattr(subject.loaded.config, below)
        check_int(option.name, value, bound - 1, least=0)
    return value


def parse_text(option: Option, given: Mapping[str, Any], subject: Subject, loaded: LoadedModel) -> list[int] | None:
    text, ids = given.get(option.name), given.get(ids_field(option))
    if text is None and ids is None and option.default is None:
        return None
    return parse_ids(subject.limits, loaded, text, ids, (option.name, ids_field(option)))


def parse_other_text(option: Option, given: Mapping[str, Any], subject: Subject) -> list[int]:
    """The text that the other model reads with its own vocabulary: the prompt, unless another one is given."""
    other_model = subject.models.get("other_model", subject.loaded)
    if own := parse_text(option, given, subject, other_model):
        return own
    text, ids = given.get(PROMPT.name), given.get(ids_field(PROMPT))
    check_same_tokens(subject.loaded.tokenizer, other_model.tokenizer, ids or (), PROMPT.name)
    return parse_ids(subject.limits, other_model, text, ids)


def parse_token(option: Option, value: str | int, subject: Subject) -> str | int | None:
    if isinstance(value, str):
        is_word = option.reads == Reads.OTHER_TOKEN and value == LIKELIEST
        return value if is_word else subject.loaded.parse_token(value, option.name)
    check_int(option.name, value, subject.loaded.config.vocab_size - 1, least=0)
    return value


def parse_one_head(option: Option, given: Mapping[str, Any], subject: Subject) -> Head | None:
    layer, head = (parse(field, given, subject) for field in fields_of(option))
    if (layer is None) != (head is None):
        names = " and ".join(field.name for field in fields_of(option))
        raise InputError(f"{option.name}_head", f"An {option.name} head needs both {names}.")
    return None if layer is None else (layer, head)


def check_long_text(name: str, text: str) -> str:
    n_bytes = len(text.encode("utf-8", "surrogatepass"))
    if n_bytes > MAX_LONG_TEXT_BYTES:
        raise InputError(name, f"The text has {n_bytes:,} bytes; at most {MAX_LONG_TEXT_BYTES:,} are read.")
    return text


def parse_row(rows: RowsOption, index: int, row: Any, subject: Subject) -> dict[str, Any]:
    read = {"prompt": row} if isinstance(row, str) else row
    try:
        check_row(read, rows.required)
        columns = {"prompt": PROMPT, **rows.columns}
        body = {name_in_body(columns[name], value): value for name, value in read.items() if name in columns}
        return {name: parse(column, body, subject) for name, column in columns.items()}
    except InputError as error:
        raise in_row(index, error) from None


def name_in_body(column: Option, value: Any) -> str:
    """The field in which the body of a question about a single prompt has the ``value`` of a column."""
    return ids_field(column) if column.reads in TEXTS and isinstance(value, list) else column.name


def check_row(row: Any, required: Sequence[str]) -> None:
    """Raise ``InputError`` unless a row has the right columns with the right types."""
    if not isinstance(row, dict):
        raise InvalidValue("row", row, "a text, or an object with a prompt")
    check_columns(row, required)
    for name, value in row.items():
        is_token = COLUMNS.get(name, PROMPT).reads == Reads.TOKEN
        is_ids = (
            type(value) is int if is_token else isinstance(value, list) and all(type(each) is int for each in value)
        )
        if not (value is None or isinstance(value, str) or is_ids):
            raise InvalidValue(name, value, "text or a token id" if is_token else "text or token ids")
