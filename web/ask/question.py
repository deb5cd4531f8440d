"""A question of Ask, made from the function of ``model.lens`` that answers it.

Everything else is made from it: the route ``/v1/lens/NAME`` with its checks and errors, its entry in the OpenAPI
document, the Gradio endpoint, the MCP tool, and the types that the page's modules are checked against.
"""

import inspect
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_type_hints

from pydantic import BaseModel

from model import LoadedModel
from model.lens.answer import Answer, first_paragraph
from model.lens.lens import call_question
from model.lens.progress import Progress
from model.lens.question import Option, Reads, options_of
from model.lens.text_pass import Text, TextPass

from ..settings import BodyLimit, Limits
from . import checks
from .answers import answer_model
from .fields import HEAD_MASK, MAX_LONG_TEXT_BYTES, MODEL, PROMPT, TEXTS, Subject, parse
from .inquiry import Content, Inquiry, to_json
from .question_runner import Job
from .service import AnswerService, PendingAnswer

Check = Callable[[Inquiry, Limits], object]
# Answers an inquiry. A question about many prompts appends each row, as JSON, to the list, and a search what it has
# found so far.
Compute = Callable[[AnswerService, Inquiry, Progress, list[bytes]], Content]
Encode = Callable[[Answer], Content]
TOO_LONG_FOR_QUERY = (*TEXTS, Reads.LONG_TEXT, Reads.ROWS)  # what is too long for a query string


# JSON escapes may triple the bytes of a text, and its token ids take more memory than its characters.
LONG_TEXT = BodyLimit(max_bytes=3 * MAX_LONG_TEXT_BYTES, budget_factor=8)
# The body, its strings, and the token ids made from them.
ROWS = BodyLimit(max_bytes=2_000_000, budget_factor=8)


@dataclass(frozen=True)
class OnRequest:
    """Fields of an answer that are sent only if they are asked for, and the help of the field that does."""

    help: str
    fields: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question of Ask.

    ``compute`` answers it, with NumPy arrays in place of lists of numbers. ``answer`` is the shape of the answer,
    including the model, the tokens of the prompt and the precision, which are added to every answer; ``returns``
    describes it in a sentence. ``check`` is called with the values of all fields before the question
    is queued, and raises ``InputError``.
    """

    name: str  # in /v1/lens/NAME
    summary: str
    fields: Sequence[Option]  # in the order in which the endpoint takes them
    returns: str
    answer: type[BaseModel]
    compute: Compute
    check: Check
    endpoint: str
    less: str  # what to ask about instead if the answer takes too long
    encode: Encode = Answer.to_arrays
    body_limit: BodyLimit | None = None  # if different from the usual one

    @property
    def path(self) -> str:
        return f"/lens/{self.name}"

    @property
    def method(self) -> str:
        """``GET``, with the fields in the query string, for a question about a model alone."""
        return "POST" if any(field.reads in TOO_LONG_FOR_QUERY for field in self.fields) else "GET"

    @property
    def models(self) -> list[str]:
        """The fields that name a model."""
        return [field.name for field in self.fields if field.reads == Reads.MODEL]

    def parse(self, limits: Limits, models: Mapping[str, LoadedModel], given: Mapping[str, Any]) -> Inquiry:
        """Check the values in ``given`` and make an inquiry of them. Raises ``InputError``."""
        subject, values = Subject(limits, models), dict[str, Any]()
        if PROMPT in self.fields:
            values["prompt"] = parse(PROMPT, given, subject)
            subject = Subject(limits, models, len(values["prompt"]))
        for field in self.fields:
            if field != PROMPT and field.reads != Reads.MODEL:
                values[field.name] = parse(field, given, subject)
        ids, head_mask = values.pop("prompt", ()), values.pop("head_mask", None)
        inquiry = Inquiry(dict(models), tuple(ids), head_mask, values)
        self.check(inquiry, limits)
        return inquiry

    def start(self, service: AnswerService, inquiry: Inquiry, client: Hashable, route: str) -> PendingAnswer:
        """``async with question.start(...) as pending``, then ``pending.progress()`` or ``await pending.answer()``.

        The outcome is counted for ``route``.
        """
        rows: list[bytes] = []

        def compute(progress: Progress) -> bytes:
            common: Content = {"model": inquiry.loaded.name}
            if inquiry.ids:
                common["tokens"] = [token._asdict() for token in inquiry.loaded.text_tokens(inquiry.ids)]
            answer = self.compute(service, inquiry, progress, rows)
            return to_json(common | answer | {"precision": service.precision(inquiry)})

        return PendingAnswer(service, inquiry.key(self.name), Job(client, compute, self.less), route, rows)


def question(
    name: str,
    function: Callable[..., Answer],
    *,
    order: str = "",
    check: Check = checks.nothing,
    less: str = "a shorter text",
    endpoint: str = "",
    on_request: Mapping[str, OnRequest] | None = None,
    encode: Encode = Answer.to_arrays,
    compute: Compute | None = None,
) -> Question:
    """The question that a function of ``model.lens`` answers.

    ``order`` names the fields in the order in which the endpoint takes them, if that is not the usual one: texts, the
    model, the function's options, and the head mask. Numbers have the digits that tell them apart in float32, or, with
    ``encode=Answer.to_dict``, in float64. ``compute`` answers in place of the function.
    """
    on_request, declared = on_request or {}, get_type_hints(function)["return"]
    fields = fields_of_question(function, on_request)
    if order:
        by_name, names = {field.name: field for field in fields}, order.split()
        if sorted(names) != sorted(by_name):
            raise ValueError(f"{name} is ordered by {names}, but its fields are {list(by_name)}")
        fields = [by_name[each] for each in names]
    title = "".join(map(str.capitalize, re.split("[-/]", name)))
    left_out = {field: asks for asks, each in on_request.items() for field in each.fields}

    def answer(service: AnswerService, inquiry: Inquiry, progress: Progress, rows: list[bytes]) -> Content:
        content = encode(answer_with(function, service, inquiry, progress, lambda left: rows.append(to_json(left))))
        return {each: value for each, value in content.items() if inquiry.values.get(left_out.get(each, ""), True)}

    reads = {field.reads for field in fields}
    return Question(
        name=name,
        summary=first_paragraph(function),
        fields=fields,
        returns=first_paragraph(declared),
        answer=answer_model(f"{title}Answer", declared, PROMPT in fields, left_out),
        compute=compute or answer,
        check=check,
        endpoint=endpoint or name.replace("-", "_"),
        less=less,
        encode=encode,
        body_limit=LONG_TEXT if Reads.LONG_TEXT in reads else ROWS if Reads.ROWS in reads else None,
    )


def fields_of_question(function: Callable[..., Answer], on_request: Mapping[str, OnRequest]) -> list[Option]:
    options = options_of(function)
    texts = [option for option in options if option.reads in TOO_LONG_FOR_QUERY]
    asks = [Option(name, bool, False, each.help) for name, each in on_request.items()]
    others = [option for option in options if option not in texts]
    prompt = [PROMPT] if is_about_text(function) else []
    has_prompts = prompt or any(option.reads == Reads.ROWS for option in texts)
    return [*prompt, *texts, MODEL, *others, *asks, *([HEAD_MASK] if has_prompts else [])]


def is_about_text(function: Callable[..., Answer]) -> bool:
    """Whether the first thing that a function reads, apart from a model, is a text, which is the prompt."""
    hints = get_type_hints(function, include_extras=True)
    return any(hints[name] in (TextPass, Text) for name in list(inspect.signature(function).parameters)[:2])


def answer_with(
    function: Callable[..., Answer],
    service: AnswerService,
    inquiry: Inquiry,
    progress: Progress,
    so_far: Callable[[Content], object] | None = None,
) -> Answer:
    """The answer of a function of ``model.lens`` to an inquiry; ``so_far`` gets what a search has found until then."""
    parameters = inspect.signature(function).parameters
    options = {name: value for name, value in inquiry.values.items() if name in parameters}
    options |= {name: service.lens(inquiry, name) for name in inquiry.models if name in parameters}
    if "progress" in parameters:
        options["progress"] = progress
    if so_far and "so_far" in parameters:
        options["so_far"] = so_far
    texts = [list(inquiry.ids)] if inquiry.ids else []
    return call_question(function, service.lens(inquiry), *texts, **options)
