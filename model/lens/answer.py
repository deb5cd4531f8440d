"""How an answer is declared: by a dataclass, whose fields are what is sent; and a drawing of its numbers."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from typing import Annotated, Any, ClassVar, NamedTuple, Self, TypedDict, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from torch import Tensor

from ..drawing.heat_map import draw_numbers
from ..drawing.html import display
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


PerLayer = Annotated[Tensor, Shape(("n_layer",))]
PerHead = Annotated[Tensor, Shape(("n_layer", "n_head"))]
TokenId = Annotated[int, IsToken()]
TokenIds = Annotated[list[int], IsToken()]
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
    declared, found = sent_type(declared), {}
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

    PER_HEAD: ClassVar[tuple[str, ...]] = ()  # the names of tensors ``(n_layer, n_head)``
    IS_BY_ITEM: ClassVar[bool] = False  # whether ``content`` lists tokens or heads, so that the fields are drawn too
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
        return replace(self, tokenizer=tokenizer, text_ids=tuple(text_ids), precision=precision, **parts)

    def __repr__(self) -> str:
        """The fields, one a line: numbers as they are, and of anything longer its shape or its beginning."""
        lines = [f"{name}: {in_one_line(value)}" for name, value in self.numbers().items()]
        return "\n  ".join([self.heading, *lines[:MAX_LINES]])

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

    def drawn(self) -> dict[str, Any]:
        """What a notebook draws of an answer that is ``IS_BY_ITEM``."""
        return self.numbers()

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
        drawn = {**self.content(), **self.drawn()} if self.IS_BY_ITEM else self.content()
        numbers = with_tensors_as(lambda numbers: numbers, drawn)
        texts = [] if self.tokenizer is None else [token.text for token in text_tokens(self.tokenizer, self.text_ids)]
        return draw_numbers(self.heading, numbers, self.PER_HEAD, texts)

    def show(self) -> None:
        """Draw tables of the numbers, coloured by value, in the cell that is running.

        Raises ``RuntimeError`` outside a notebook.
        """
        display(self._repr_html_(), repr(self))


def in_one_line(value: Any) -> str:
    """A value as ``repr`` shows it."""
    if isinstance(value, Tensor):
        return f"tensor {tuple(value.shape)}" if value.numel() > 1 else repr(value.tolist())
    if isinstance(value, Answer):
        return type(value).__name__
    if isinstance(value, Mapping):
        return shorten("{" + ", ".join(f"{key}: {in_one_line(each)}" for key, each in value.items()) + "}", MAX_WIDTH)
    if isinstance(value, list | tuple) and len(value) > MAX_ITEMS:
        return f"{len(value):,} items"
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
