"""The declaration of an Ask question: its fields, the function that answers it, the shape of its answer, its limits.

This declaration generates the route ``/v1/lens/NAME`` with its checks and errors, its entry in the OpenAPI document,
the Gradio endpoint, the MCP tool, and the types that the page's modules are checked against.
"""

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import BaseModel
from pydantic import Field as Described

from model import InputError, LoadedModel
from model.config import check_int
from model.head_tensors import Head
from model.lens.progress import Progress
from model.lens.text_pass import heads_by_layer

from ..serving.inputs import parse_ids
from ..settings import Limits
from .inquiry import Answer, Ask, Inquiry, PendingAnswer, to_json
from .turns import Job

MAX_LONG_TEXT_BYTES = 1_000_000  # of a text in which Ask looks for the passages on which each head fires

PerHead = list[list[float]]  # [layer][head]
REQUIRED: Any = object()  # in place of a default
Bound = Literal["n_layer", "n_head", "vocab_size", "context_length", "n_tokens"]


@dataclass(frozen=True)
class Subject:
    """The models, text and limits against which the values of fields are checked."""

    limits: Limits
    models: Mapping[str, LoadedModel]  # keyed by the field that names them
    n_tokens: int = 0  # of the prompt

    @property
    def loaded(self) -> LoadedModel:
        return self.models["model"]


@dataclass(frozen=True)
class Field:
    """A field of a question. It is required unless it has a default, which null also selects.

    ``kind`` is a Python type: a scalar, a ``Literal``, a union of these, or a list of numbers. A number is at least
    ``least`` and at most ``most``; an index counts from 0 and is below ``below``, a size of the model or of the text.
    """

    name: str
    help: str
    kind: Any = str
    default: Any = REQUIRED
    least: int | None = None
    most: int | None = None
    below: Bound | None = None
    is_posted: ClassVar[bool] = False  # whether it is too long for a query string

    @property
    def parts(self) -> Sequence["Field"]:
        """The fields of the body that this field is read from."""
        return [self]

    def parse(self, given: Mapping[str, Any], subject: Subject) -> Any:
        """Return its checked value in ``given``. Raises ``InputError``."""
        value = given.get(self.name)
        if self.below is not None and isinstance(value, int):
            config = subject.loaded.config
            bound = subject.n_tokens if self.below == "n_tokens" else getattr(config, self.below)
            check_int(self.name, value, bound - 1, least=0)
        return self.default if value is None else value


@dataclass(frozen=True)
class ModelField(Field):
    """The name of a served model. ``Inquiry.models`` has the model itself."""

    default: Any = None


@dataclass(frozen=True)
class TextField(Field):
    """A text that fits into the context, read as token ids. It may also be given as ids, in the field ``ids``."""

    ids: str = "tokens"
    is_posted: ClassVar[bool] = True

    @property
    def parts(self) -> Sequence[Field]:
        ids_help = f"Token ids, instead of `{self.name}`."
        return [Field(self.name, self.help, default=None), Field(self.ids, ids_help, list[int], default=None)]

    def parse(self, given: Mapping[str, Any], subject: Subject) -> list[int] | None:
        text, ids = given.get(self.name), given.get(self.ids)
        if text is None and ids is None and self.default is None:
            return None
        return parse_ids(subject.limits, subject.loaded, text, ids, (self.name, self.ids))


@dataclass(frozen=True)
class LongTextField(Field):
    """A text that may be longer than the context."""

    is_posted: ClassVar[bool] = True

    def parse(self, given: Mapping[str, Any], _subject: Subject) -> str:
        text: str = given[self.name]
        n_bytes = len(text.encode("utf-8", "surrogatepass"))
        if n_bytes > MAX_LONG_TEXT_BYTES:
            raise InputError(self.name, f"The text has {n_bytes:,} bytes; at most {MAX_LONG_TEXT_BYTES:,} are read.")
        return text


@dataclass(frozen=True)
class TokenField(Field):
    """A token, given as text or as an id, and read as an id."""

    kind: Any = str | int
    below: Bound | None = "vocab_size"

    def parse(self, given: Mapping[str, Any], subject: Subject) -> int | None:
        value = given.get(self.name)
        given_id: int | None = super().parse(given, subject)
        return subject.loaded.parse_token(value, self.name) if isinstance(value, str) else given_id


@dataclass(frozen=True)
class HeadsField(Field):
    """Heads, each as ``[layer, head]``."""

    kind: Any = list[list[int]]

    def parse(self, given: Mapping[str, Any], subject: Subject) -> list[Head] | None:
        heads = given.get(self.name)
        if heads is None:
            return None
        pairs = [(layer, head) for layer, head in heads]
        heads_by_layer(subject.loaded.config, pairs)
        return pairs


@dataclass(frozen=True)
class HeadMaskField(Field):
    """A factor for each head's context vectors; 1 keeps a head as it is."""

    kind: Any = list[list[float]]
    default: Any = None

    def parse(self, given: Mapping[str, Any], subject: Subject) -> Any:
        return subject.loaded.parse_head_mask(given.get(self.name))


# Fields that many questions share.
MODEL = ModelField("model", "The name of a served model, or a training step (NAME@STEP); the first model by default.")
PROMPT = TextField("prompt", "The text to read; it is not continued.")
HEAD_MASK = HeadMaskField("head_mask", "`[layer][head]`: 1 keeps a head, 0 removes it.")
LAYER = Field("layer", "The layer, counted from 0.", int, below="n_layer")
HEAD = Field("head", "The head, counted from 0.", int, below="n_head")


@dataclass(frozen=True)
class BodyLimit:
    """A larger limit for the bodies of one route."""

    max_bytes: int
    budget_factor: int = 2  # bytes counted against the budget per byte of a body: the body and everything made from it


@dataclass(frozen=True)
class Question:
    """A question of Ask.

    ``compute`` answers it, with NumPy arrays in place of lists of numbers. ``answer`` is the shape of the answer,
    including the model, the tokens of the prompt and the precision, which are added to every answer; ``returns``
    describes it in a sentence. ``check`` is called with the values of all fields before the question
    is queued, and raises ``InputError``.
    """

    name: str  # in /v1/lens/NAME
    summary: str
    fields: Sequence[Field]  # in the order in which the endpoint takes them
    returns: str
    answer: type[BaseModel]
    compute: Callable[[Inquiry, Progress], Answer]
    check: Callable[[Inquiry, Limits], object] = lambda _inquiry, _limits: None
    endpoint_name: str = ""  # if it differs from ``name``
    less: str = "a shorter text"  # what to ask about instead if the answer takes too long
    body_limit: BodyLimit | None = None  # if different from the usual one

    @property
    def path(self) -> str:
        return f"/lens/{self.name}"

    @property
    def method(self) -> str:
        """``GET``, with the fields in the query string, for a question about a model alone."""
        return "POST" if any(field.is_posted for field in self.fields) else "GET"

    @property
    def endpoint(self) -> str:
        return self.endpoint_name or re.sub("[-/]", "_", self.name)

    @property
    def models(self) -> list[str]:
        """The fields that name a model."""
        return [field.name for field in self.fields if isinstance(field, ModelField)]

    def parse(self, ask: Ask, limits: Limits, models: Mapping[str, LoadedModel], given: Mapping[str, Any]) -> Inquiry:
        """Check the values in ``given`` and make an inquiry of them. Raises ``InputError``."""
        subject, values = Subject(limits, models), dict[str, Any]()
        if PROMPT in self.fields:
            values["prompt"] = PROMPT.parse(given, subject)
            subject = Subject(limits, models, len(values["prompt"]))
        for field in self.fields:
            if field is not PROMPT and not isinstance(field, ModelField):
                values[field.name] = field.parse(given, subject)
        ids, head_mask = values.pop("prompt", ()), values.pop("head_mask", None)
        inquiry = Inquiry(ask, dict(models), tuple(ids), head_mask, values)
        self.check(inquiry, limits)
        return inquiry

    def ask(self, inquiry: Inquiry, client: Hashable, route: str) -> PendingAnswer:
        """``async with question.ask(...) as pending``, then ``pending.progress()`` or ``await pending.answer()``.

        The outcome is counted for ``route``.
        """

        def compute(progress: Progress) -> Answer:
            common: Answer = {"model": inquiry.loaded.name}
            if inquiry.ids:
                common["tokens"] = [token._asdict() for token in inquiry.loaded.text_tokens(inquiry.ids)]
            return common | self.compute(inquiry, progress) | {"precision": inquiry.precision()}

        job = Job(client, lambda progress: to_json(compute(progress)), self.less)
        return PendingAnswer(inquiry.ask, inquiry.key(self.name), job, route, inquiry.rows)


# ---- Parts of answers ------------------------------------------------------------------------------------------------


class NamedToken(BaseModel):
    id: int
    text: str


class ProbableToken(NamedToken):
    probability: float


class Precision(BaseModel):
    computed: str
    served: str
    largest_difference: float | None = Described(
        None,
        description="If the model is served in another precision: the largest change this makes to the "
        "log-probability of any token of the text, in nats.",
    )


class ModelAnswer(BaseModel):
    model: str
    precision: Precision


class TextAnswer(ModelAnswer):
    tokens: list[NamedToken]
