"""How a question is declared: by the function that answers it, next to its mathematics.

The first parameters of the function are what it is about: a ``TextPass`` for each text, or else the ``Lens`` of a
model, or the ``GPT`` in float32 if the weights are all it needs. The other parameters are its options. Every interface
is made from their annotations: a sentence of help, the bounds of a number (``Within``), and what is read where the type
does not say it (``Reads``). An option without help is one of Python alone. The function returns an ``Answer``, whose
fields are declared in the same way.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

LIKELIEST = "likeliest"  # in place of a token: the most probable one other than the token in question
REQUIRED: Any = inspect.Parameter.empty  # in place of a default


@dataclass(frozen=True)
class Within:
    """The bounds of an integer; an index counts from 0 and is ``below`` a size of the model or of the text."""

    least: int | None = None
    most: int | None = None
    below: Literal["n_layer", "n_head", "vocab_size", "context_length", "n_tokens"] | None = None


@dataclass(frozen=True)
class Json:
    """The type of an option in JSON, if Python takes more."""

    kind: Any


class Reads(Enum):
    """What an option is read as, apart from numbers, choices and names."""

    TOKEN = "a token, as text or as an id"
    OTHER_TOKEN = "a token, or the word for the most probable one other than the token in question"
    HEADS = "heads, each as (layer, head)"
    NEURONS = "MLP neurons, each as (layer, neuron)"
    TEXT = "a text that fits into the context"
    OTHER_TEXT = "a text that the other model reads: the first text, unless another one is given"
    TEXTS = "texts that each fit into the context"
    LONG_TEXT = "a text that may be longer than the context"
    MODEL = "another model"
    HEAD_MASK = "a factor for each head's context vectors in all texts"
    ROWS = "prompts, with the columns that a question about several prompts reads"


Layer = Annotated[int, Within(below="n_layer"), "The layer, counted from 0."]
HeadIndex = Annotated[int, Within(below="n_head"), "The head, counted from 0."]
Position = Annotated[
    int | None,
    Within(below="n_tokens"),
    "The token after which the next one is predicted, counted from 0; the last by default.",
]
NextToken = Annotated[
    str | int | None, Reads.TOKEN, "The next token, as text or as an id; the most probable one by default."
]
LongText = Annotated[
    str, Reads.LONG_TEXT, "The text to read, of up to a megabyte; the model must know all of its characters."
]
AnswerToken = Annotated[
    str | int | None, Reads.TOKEN, "The token that the clean prompt leads to; the most probable by default."
]
WrongToken = Annotated[
    str | int | None,
    Reads.TOKEN,
    "The token that the corrupted prompt leads to; by default the most probable other than `answer`.",
]
PatchDirection = Annotated[
    Literal["denoise", "noise"],
    "`denoise` patches activations of the clean prompt into a run of the corrupted one, `noise` those of the "
    "corrupted prompt into a run of the clean one.",
]


@dataclass(frozen=True)
class Option:
    """A parameter of a question, as its annotation declares it. ``kind`` is its type in JSON, without null."""

    name: str
    kind: Any
    default: Any  # ``REQUIRED`` if there is none
    help: str
    within: Within = Within()
    reads: Reads | None = None


@cache
def options_of(question: Callable[..., Any]) -> Sequence[Option]:
    """The options of a question that every interface offers, in their order."""
    found = []
    hints = get_type_hints(question, include_extras=True)
    for name, parameter in inspect.signature(question).parameters.items():
        words = {type(word): word for word in getattr(hints[name], "__metadata__", ())}
        if str in words:
            kind = words[Json].kind if Json in words else without_none(hints[name].__origin__)
            within = words.get(Within, Within())
            found.append(Option(name, kind, parameter.default, words[str], within, words.get(Reads)))
    return found


def without_none(kind: Any) -> Any:
    """A type without None among its choices."""
    choices = [choice for choice in get_args(kind) if choice is not type(None)]
    return reduce(or_, choices) if get_origin(kind) in (Union, UnionType) else kind
