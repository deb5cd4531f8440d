"""How an answer is declared: by a dataclass, whose fields are what is sent; and a drawing of its numbers."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, Self, TypedDict, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from torch import Tensor

from ..drawing.heat_map import Part, draw, in_digits, largest, shown_token
from ..drawing.html import display, page
from ..errors import shorten
from ..tokenizer import Token, Tokenizer, text_tokens, token_text

MAX_LINES, MAX_WIDTH, MAX_ITEMS = 28, 100, 8  # of what ``repr`` shows

# ---- The words of a declaration --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    """The axes of a tensor. What is sent are nested lists of numbers, or of integers if they are ``whole``."""

    axes: tuple[str, ...]
    whole: bool = False


class IsToken:
    """Of a token id, or of several: what is sent also has the texts of the tokens, each by itself."""


@dataclass(frozen=True)
class SentAs:
    """What is sent, where the field has a wider type: of a dictionary, the ``TypedDict`` that its keys make it."""

    kind: Any


class NotSent:
    """Of a field that is only there in Python."""


PerText = Annotated[Tensor, Shape(("T",))]
PerLayer = Annotated[Tensor, Shape(("n_layer",))]
PerHead = Annotated[Tensor, Shape(("n_layer", "n_head"))]
TokenId = Annotated[int, IsToken()]
TokenIds = Annotated[list[int], IsToken()]
TopTokens = Annotated[Tensor, Shape(("k",), whole=True), IsToken()]
Member = TypeVar("Member", bound=Callable[..., Any])


def sent(member: Member) -> Member:
    """A decorator for a method of an answer whose result is sent under its name, described by its docstring."""
    vars(member)["is_sent"] = True
    return member


class NamedToken(TypedDict):
    id: int
    text: str


class ProbableToken(NamedToken):
    probability: float


class Sent(NamedTuple):
    """A field of what an answer sends: its annotation, and a sentence about it."""

    kind: Any
    help: str | None


def first_paragraph(documented: Any) -> str:
    """The first paragraph of a docstring, in one line of Markdown."""
    return " ".join((inspect.getdoc(documented) or "").partition("\n\n")[0].replace("``", "`").split())


def sent_type(declared: Any) -> Any:
    """The ``TypedDict`` that an answer sends, if it does not send its fields."""
    content = getattr(declared, "content", Answer.content)
    return declared if content is Answer.content else get_type_hints(content)["return"]


@cache
def sent_fields(declared: Any) -> dict[str, Sent]:
    """What is sent of an answer, by name: what its ``content`` is declared to return, or else its fields.

    ``declared`` may also be another dataclass, or a ``TypedDict``.
    """
    return declared_fields(sent_type(declared))


def declared_fields(declared: Any) -> dict[str, Sent]:
    """The fields of a dataclass or a ``TypedDict``, and the methods that are ``sent``, by name."""
    found = {}
    for name, hint in get_type_hints(declared, include_extras=True).items():
        words = getattr(hint, "__metadata__", ())
        if get_origin(hint) is not ClassVar and not any(isinstance(word, NotSent) for word in words):
            found[name] = Sent(hint, next((word for word in reversed(words) if isinstance(word, str)), None))
    for name, member in [item for each in reversed(declared.__mro__) for item in vars(each).items()]:
        member = member.fget if isinstance(member, property) else member
        if getattr(member, "is_sent", False):
            found[name] = Sent(get_type_hints(member, include_extras=True)["return"], first_paragraph(member) or None)
    return found


# ---- Answers ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, repr=False)
class Answer:
    """A base of frozen dataclasses with tensors, float32 on the CPU.

    What is sent are the fields. An answer that sends its numbers in another form overrides ``content``, whose return
    type, a ``TypedDict``, then declares what is sent.
    """

    # Of the model that answered, for the texts of tokens; and the tokens of the text, for the axes of tables.
    tokenizer: Annotated[Tokenizer | None, NotSent()] = field(default=None, repr=False, compare=False)
    text_ids: Annotated[tuple[int, ...], NotSent()] = field(default=(), repr=False, compare=False)
    precision: Annotated[str, NotSent()] = field(default="", compare=False)  # see ``float32.in_words``

    def __init_subclass__(cls) -> None:
        if "__repr__" not in vars(cls):  # or the decorator would make one that shows every number
            cls.__repr__ = Answer.__repr__  # type: ignore[method-assign]

    def given_by(self, tokenizer: Tokenizer, text_ids: Sequence[int], precision: str) -> Self:
        """The same answer, in whose ``content`` tokens have texts as well as ids, and which names its precision."""
        given = {name: part for name, part in vars(self).items() if isinstance(part, Answer)}
        parts = {name: part.given_by(tokenizer, text_ids, precision) for name, part in given.items()}
        return replace(
            self, tokenizer=tokenizer, text_ids=tuple(text_ids) or self.text_ids, precision=precision, **parts
        )

    def __repr__(self) -> str:
        """The fields, one a line: numbers as they are, and of anything longer its shape or its beginning."""
        hints = get_type_hints(type(self), include_extras=True)
        hidden = {each.name for each in fields(self) if not each.repr}
        derived = {name: getattr(self, name) for name in derived_names(type(self))}
        lines = [
            f"{name}: {self.token_texts(value)} ({value})"
            if type(value) is int and IsToken in map(type, words_of(hints.get(name)))
            else f"{name}: {in_one_line(value)}"
            for name, value in {**self.numbers(), **derived}.items()
            if name not in hidden
        ]
        return "\n  ".join([self.heading, *([self.summary] if self.summary else []), *lines[:MAX_LINES]])

    @property
    def heading(self) -> str:
        """The name of the answer, and the precision in which it was computed, if that is known."""
        return f"{type(self).__name__}, in {self.precision}" if self.precision else type(self).__name__

    def named(self, ids: Iterable[int]) -> list[NamedToken]:
        """Tokens as they are sent, without a text if the tokenizer is not known."""
        if self.tokenizer is None:
            return [{"id": token_id} for token_id in ids]  # type: ignore[typeddict-item]
        return [{"id": token_id, "text": token_text(self.tokenizer, token_id)} for token_id in ids]

    def named_text(self, ids: list[int]) -> list[NamedToken]:
        """The tokens of a text, likewise."""
        if self.tokenizer is None:
            return self.named(ids)
        return [{"id": token.id, "text": token.text} for token in text_tokens(self.tokenizer, ids)]

    def numbers(self) -> dict[str, Any]:
        """The fields of the answer by name."""
        of_every_answer = {each.name for each in fields(Answer)}
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name not in of_every_answer}

    @property
    def summary(self) -> str:
        """What the answer says, in a sentence or two."""
        return ""

    @property
    def texts(self) -> list[str]:
        """The texts of the tokens that were read; none if the tokenizer is not known."""
        return [] if self.tokenizer is None else [token.text for token in text_tokens(self.tokenizer, self.text_ids)]

    def peak(self, value: Tensor, *axes: str | Sequence[str]) -> str:
        """The place and value of the number in a tensor that is furthest from zero."""
        [(place, most)] = largest(Part("", value, axes or ("n_layer", "n_head")), self.texts)
        return f"{place}: {in_digits(most)}"

    def drawn(self) -> Iterator[Part]:
        """What a notebook draws: what is declared of each field, apart from those that are not sent."""
        for name, (kind, help) in declared_fields(type(self)).items():
            value = getattr(self, name)
            yield from self.drawn_value(name, value() if callable(value) else value, kind, help or "")

    def drawn_value(self, name: str, value: Any, kind: Any, help: str = "") -> Iterator[Part]:
        """A value as a notebook draws it, by the words of its annotation ``kind``."""
        words = {type(word): word for word in words_of(kind)}
        axes = words[Shape].axes if Shape in words else ()
        if isinstance(value, Answer):
            yield from (part._replace(name=f"{name} {part.name}") for part in value.drawn())
        elif isinstance(value, Mapping):
            for key, each in value.items():
                yield from self.drawn_value(f"{name} {key}", each, kind, help)
        elif is_dataclass(value):
            yield from self.drawn_value(name, vars(value), None, help)
        elif isinstance(value, list) and value and (is_dataclass(value[0]) or isinstance(value[0], Mapping)):
            yield Part(name, [self.record(each) for each in value], help=help)
        elif IsToken in words and value is not None:
            yield Part(name, self.token_texts(value), axes, help)
        elif isinstance(value, Tensor) and axes:
            yield Part(name, value, axes, help)
        elif value is not None and value != [] and value != "":
            yield Part(name, in_one_line(value) if isinstance(value, Tensor | list | tuple) else value)

    def record(self, value: Any) -> dict[str, Any]:
        """A dataclass or a dictionary as a row of a table, with texts in place of tokens."""
        value = value if isinstance(value, Mapping) else self.content_of(value)
        value = {name: each.tolist() if isinstance(each, Tensor) else each for name, each in value.items()}
        named = {"token" if name == "text" and "id" in value else name: each for name, each in value.items()}
        return {
            name: shown_token(each) if name == "token" else in_a_cell(each)
            for name, each in named.items()
            if name != "id" or "text" not in value
        }

    def token_texts(self, ids: Any) -> Any:
        """The texts of a token, or of nested lists or a tensor of them; their ids if the tokenizer is not known."""
        ids = ids.tolist() if isinstance(ids, Tensor) else ids
        return list(map(self.token_texts, ids)) if isinstance(ids, list) else in_a_cell(self.named([ids])[0])

    def content(self) -> Mapping[str, Any]:
        """What ``/v1/lens`` sends, with tensors in place of lists."""
        return self.content_of(self)

    def content_of(self, part: Any) -> dict[str, Any]:
        """What is sent of a dataclass, with the names of its tokens."""
        declared: Any = type(part)
        found = dict[str, Any]()
        for name, (kind, _) in sent_fields(declared).items():
            value = getattr(part, name)
            value = value() if callable(value) else value
            if value is not None and IsToken in map(type, words_of(kind)):
                value = self.named(value) if isinstance(value, list) else self.named([value])[0]
            elif isinstance(value, list) and value and is_dataclass(value[0]):
                value = [self.content_of(each) for each in value]
            found[name] = value
        return found

    def to_dict(self) -> dict[str, Any]:
        """The same with nested lists of numbers, ready for JSON."""
        return with_tensors_as(lambda numbers: numbers.tolist(), self.content())

    def to_arrays(self) -> dict[str, Any]:
        """The same with NumPy arrays."""

        def as_array(numbers: Any) -> Any:
            return numbers.numpy() if isinstance(numbers, Tensor) else numbers

        return with_tensors_as(as_array, self.content())

    def _repr_html_(self) -> str:
        """What a notebook draws for a cell that ends in an answer."""
        return draw(self.heading, self.summary, list(self.drawn()), self.texts)

    def to_html(self, path: str | Path) -> None:
        """Write a file that shows the same in any browser, without a script."""
        Path(path).write_text(page(type(self).__name__, self._repr_html_()), encoding="utf-8")

    def show(self) -> None:
        """Draw tables of the numbers, coloured by value, in the cell that is running.

        Raises ``RuntimeError`` outside a notebook.
        """
        display(self._repr_html_(), repr(self))


def derived_names(kind: type) -> list[str]:
    """The properties of a kind of answer that other kinds do not have."""
    own = {name: member for each in kind.__mro__ for name, member in vars(each).items() if isinstance(member, property)}
    return [name for name in own if name not in vars(Answer)]


def in_a_cell(value: Any) -> Any:
    """A value of a record as a table shows it: numbers as they are, tokens by their texts."""
    if isinstance(value, Mapping):
        return shown_token(value["text"]) if "text" in value else value.get("id", in_one_line(value))
    if isinstance(value, list | tuple):
        return " ".join(str(in_a_cell(each)) for each in value)
    return value


def in_one_line(value: Any) -> str:
    """A value as ``repr`` shows it."""
    if isinstance(value, Tensor):
        return f"tensor {tuple(value.shape)}" if value.numel() > 1 else repr(value.tolist())
    if isinstance(value, Answer):
        return type(value).__name__
    if isinstance(value, Token):
        return repr(value.text)
    if hasattr(value, "_asdict"):
        return in_one_line(value._asdict())
    if isinstance(value, Mapping):
        shown = "{" + ", ".join(f"{key}: {in_one_line(each)}" for key, each in value.items()) + "}"
        return shown if len(shown) <= MAX_WIDTH else f"{{{', '.join(map(str, value))}}}"[:MAX_WIDTH]
    if value is None or isinstance(value, str):
        return repr(value) if value is None or len(value) <= MAX_WIDTH else shorten(value, MAX_WIDTH)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple) and len(value) > MAX_ITEMS:
        return f"{len(value):,} items"
    if isinstance(value, list) and any(isinstance(each, Mapping | Token) for each in value):
        shown = f"[{', '.join(map(in_one_line, value))}]"
        return shown if len(shown) <= MAX_WIDTH else f"{shown[:MAX_WIDTH]} ..."
    return shorten(value, MAX_WIDTH)


def left_out_in_words(rows: Sequence[Mapping[str, Any]], n_rows: int) -> str:
    """How many of the rows were left out, and why the first of them; "" if there are none."""
    if not rows:
        return ""
    first = rows[0]
    return f"{len(rows):,} of {n_rows:,} rows left out, such as row {first['row']}: {first['error']}"


def words_of(kind: Any) -> tuple[Any, ...]:
    """The words that an annotation, or one of its choices, adds to a type."""
    return (*getattr(kind, "__metadata__", ()), *(word for each in get_args(kind) for word in words_of(each)))


def with_tensors_as(convert: Callable[[Any], Any], value: Any) -> Any:
    """Nested data with every tensor and NumPy number converted, and answers in it as dictionaries."""
    if isinstance(value, Tensor | np.generic):
        return convert(value)
    if isinstance(value, Answer):
        return with_tensors_as(convert, value.content())
    if is_dataclass(value):
        return with_tensors_as(convert, vars(value))
    if isinstance(value, Token):
        return value._asdict()
    if isinstance(value, Mapping):
        return {name: with_tensors_as(convert, each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [with_tensors_as(convert, each) for each in value]
    return value
