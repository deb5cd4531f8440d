"""A model as questions read it, and questions as methods of a loaded model."""

import inspect
from collections.abc import Callable, Collection, Sequence
from functools import cached_property, wraps
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, get_type_hints

import torch
from torch import Tensor

from ..drawing.trace import Trace
from ..generate import GivenToken, Prompt
from ..gpt import GPT
from ..tokenizer import Tokenizer
from .alignment import check_same_tokens
from .answer import Answer
from .float32 import check_unhooked, in_float32, in_words, refresh
from .interventions.reference import mean_contexts
from .progress import bar
from .question import LIKELIEST, Reads, options_of
from .text_pass import Text, TextPass, TokenizedModel

Options = ParamSpec("Options")
Answered = TypeVar("Answered")


class ReadableModel(TokenizedModel, Protocol):
    """What a lens needs of a model, and a ``LoadedModel`` has."""

    @property
    def name(self) -> str: ...
    def parse_prompt(self, prompt: Prompt) -> list[int]: ...
    def parse_token(self, token: GivenToken, name: str = ...) -> int: ...


class Lens:
    """Reads texts with the weights of a model as they are served, in float32.

    The passes are ``TextPass`` objects, which any analysis takes.
    """

    def __init__(self, model: ReadableModel) -> None:
        self.model = model

    @property
    def lens(self) -> "Lens":
        """Itself: where a question takes another model, it takes the lens of one too."""
        return self

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def tokenizer(self) -> Tokenizer:
        return self.model.tokenizer

    @property
    def precision(self) -> str:
        """That of every answer, in words."""
        return in_words(torch.float32, self.model.gpt)

    @cached_property
    def gpt(self) -> GPT:
        """The model in float32: see ``in_float32``."""
        check_unhooked(self.model.gpt)
        return in_float32(self.model.gpt)

    def refresh(self) -> None:
        """Read with the weights that the model has at this moment. Raises ``InputError`` for hooks of torch's."""
        check_unhooked(self.model.gpt)
        if "gpt" in vars(self):
            refresh(self.gpt, self.model.gpt)

    def read(self, text: Text) -> TextPass:
        """A pass over a text. Raises ``InputError`` for one that the model cannot read."""
        return self.pass_over(self.parse(text), text.head_mask if isinstance(text, Trace) else None)

    def pass_over(self, ids: Sequence[int], head_mask: Tensor | None) -> TextPass:
        return TextPass(self.gpt, ids, head_mask, self)

    def mean_contexts(self, texts: Sequence[Sequence[int]], head_mask: Tensor | None) -> Tensor:
        """See ``reference.mean_contexts``."""
        return mean_contexts(self.gpt, texts, head_mask)

    def parse(self, text: Text) -> list[int]:
        """The token ids of a text."""
        if not isinstance(text, Trace):
            return self.model.parse_prompt(text)
        ids = [token.id for token in text.tokens]
        check_same_tokens(text.traced_by.tokenizer, self.tokenizer, ids, "text")
        return self.model.parse_prompt(ids)

    def token_id(self, token: GivenToken | None, name: str = "token") -> int | None:
        """The id of a token, see ``parse_token``; None for None."""
        return None if token is None else self.model.parse_token(token, name)


# ---- Questions as methods --------------------------------------------------------------------------------------------


class HasLens(Protocol):
    """A loaded model, or a lens."""

    @property
    def lens(self) -> Lens: ...


def call_question(question: Callable[..., Answered], lens: Lens, *args: Any, **options: Any) -> Answered:
    """Call a question with texts in place of passes, and a lens in place of whatever it reads of the model."""
    signature, hints = inspect.signature(question), get_type_hints(question)
    about = {name: lens if kind is Lens else lens.gpt for name, kind in hints.items() if kind in (Lens, GPT)}
    own = without(signature, about)
    takes_any = any(each.kind is each.VAR_KEYWORD for each in own.parameters.values())
    if unknown := [] if takes_any else [name for name in options if name not in own.parameters]:
        found, takes = ", ".join(map(repr, unknown)), ", ".join(own.parameters)
        raise TypeError(f"{question.__name__}: there is no argument {found}. It takes {takes}.")
    try:
        given = own.bind(*args, **options)
    except TypeError as error:
        raise TypeError(f"{question.__name__}: {error}. It takes {', '.join(own.parameters)}.") from None
    reads = {option.name: option.reads for option in options_of(question)}
    for name, value in given.arguments.items():
        if hints[name] is TextPass:
            given.arguments[name] = lens.read(value)
        elif reads.get(name) == Reads.TOKEN or (reads.get(name) == Reads.OTHER_TOKEN and value != LIKELIEST):
            given.arguments[name] = lens.token_id(value, name)
        elif reads.get(name) in (Reads.HEADS, Reads.NEURONS) and is_one(value):
            given.arguments[name] = [value]
    answer = question(*about.values(), *given.args, **given.kwargs)
    ids = next((text.ids for text in given.arguments.values() if isinstance(text, TextPass)), ())
    return answer.given_by(lens.tokenizer, ids, lens.precision) if isinstance(answer, Answer) else answer


def is_one(value: Any) -> bool:
    """Whether a value is one head or neuron, a layer and an index, in place of a list of them."""
    return isinstance(value, list | tuple) and len(value) == 2 and all(isinstance(each, int) for each in value)


def without(signature: inspect.Signature, names: Collection[str]) -> inspect.Signature:
    kept = [each for name, each in signature.parameters.items() if name not in names]
    return signature.replace(parameters=kept)


class Method(Generic[Options, Answered]):
    """A question as a method of a loaded model, which takes texts in place of passes.

    The method has the name, the options and the docstring of the question.
    """

    def __init__(self, question: Callable[..., Answered]) -> None:
        self.question = question

    def __set_name__(self, _owner: type, name: str) -> None:
        self.name = name

    def __get__(self, loaded: HasLens | None, _: type | None = None) -> Callable[Options, Answered]:
        return self.method if loaded is None else MethodType(self.method, loaded)

    @cached_property
    def method(self) -> Callable[..., Answered]:
        @wraps(self.question)
        def method(loaded: HasLens, *args: Any, **options: Any) -> Answered:
            if "progress" in options or "progress" not in signature.parameters:
                return call_question(self.question, loaded.lens, *args, **options)
            with bar(self.name) as progress:
                return call_question(self.question, loaded.lens, *args, progress=progress, **options)

        hints, signature = get_type_hints(self.question), inspect.signature(self.question)
        about = [name for name, kind in hints.items() if kind in (Lens, GPT)]
        given = [
            each.replace(annotation=Text if hints[name] is TextPass else hints[name])
            for name, each in without(signature, about).parameters.items()
        ]
        parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY), *given]
        method.__name__ = method.__qualname__ = self.name
        method.__doc__ = described(self.question)
        method.__signature__ = inspect.Signature(parameters, return_annotation=hints["return"])  # type: ignore[attr-defined]
        return method


def described(question: Callable[..., Any]) -> str:
    """The docstring of a question, and the help of its options."""
    lines = [f"    {option.name}: {option.help}" for option in options_of(question)]
    return "\n".join([inspect.getdoc(question) or "", *(["", "Options:", *lines] if lines else [])])


# Type checkers know the arguments of a method by what its question reads: a text, two texts, a model, or its weights.


def of_text(
    question: Callable[Concatenate[TextPass, Options], Answered],
) -> Method[Concatenate[Text, Options], Answered]:
    return Method(question)


def of_two_texts(
    question: Callable[Concatenate[TextPass, TextPass, Options], Answered],
) -> Method[Concatenate[Text, Text, Options], Answered]:
    return Method(question)


def of_model(question: Callable[Concatenate[Lens, Options], Answered]) -> Method[Options, Answered]:
    return Method(question)


def of_weights(question: Callable[Concatenate[GPT, Options], Answered]) -> Method[Options, Answered]:
    return Method(question)
