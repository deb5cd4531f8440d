"""A question asked of many prompts: every row, the mean over the rows, and its standard error."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from pydantic import Field as Described

from model import InputError
from model.errors import InvalidValue
from model.lens.progress import Progress
from model.lens.prompts import OVER_PROMPTS, AboutPrompts, Numbers, average, check_columns, each_row, in_row

from ..settings import Limits
from .inquiry import Answer, Inquiry
from .question import PROMPT, BodyLimit, Field, ModelAnswer, Question, Subject, TextField, TokenField

MAX_ROWS = 1_000
# The body, its strings, and the token ids made from them.
BODY_LIMIT = BodyLimit(max_bytes=2_000_000, budget_factor=8)

# How the columns of a row other than its prompt are read.
FIELDS: dict[str, Field] = {
    "corrupted": TextField("corrupted", "A prompt that leads to another answer.", default=None, ids="corrupted_tokens"),
    "answer": TokenField("answer", "The token that the prompt leads to.", default=None),
    "wrong": TokenField("wrong", "The token that the corrupted prompt leads to.", default=None),
}


@dataclass(frozen=True)
class PromptsField(Field):
    """Rows of prompts, as text or token ids. Each is read as a dictionary with the ids of its columns."""

    kind: Any = list[Any]
    is_posted: ClassVar[bool] = True
    columns: Mapping[str, Field] = field(default_factory=dict)  # those that the question reads besides the prompt
    required: Sequence[str] = ()  # those of them that it needs

    def parse(self, given: Mapping[str, Any], subject: Subject) -> list[dict[str, Any]]:
        return [self.parse_row(index, row, subject) for index, row in enumerate(given[self.name])]

    def parse_row(self, index: int, row: Any, subject: Subject) -> dict[str, Any]:
        read = {"prompt": row} if isinstance(row, str) else row
        try:
            check_row(read, self.required)
            columns = {"prompt": PROMPT, **self.columns}
            body = {name_in_body(columns[name], value): value for name, value in read.items() if name in columns}
            return {name: column.parse(body, subject) for name, column in columns.items()}
        except InputError as error:
            raise in_row(index, error) from None


def name_in_body(column: Field, value: Any) -> str:
    """The field in which the body of a question about a single prompt has the ``value`` of a column."""
    return column.ids if isinstance(column, TextField) and isinstance(value, list) else column.name


def check_row(row: Any, required: Sequence[str]) -> None:
    """Raise ``InputError`` unless a row has the right columns with the right types."""
    if not isinstance(row, dict):
        raise InvalidValue("row", row, "a text, or an object with a prompt")
    check_columns(row, required)
    for name, value in row.items():
        is_token = name in ("answer", "wrong")
        is_ids = (
            type(value) is int if is_token else isinstance(value, list) and all(type(each) is int for each in value)
        )
        if not (value is None or isinstance(value, str) or is_ids):
            raise InvalidValue(name, value, "text or a token id" if is_token else "text or token ids")


class PromptsAnswer(ModelAnswer):
    """The numbers of a question for many prompts, by name; each is a number or nested lists, as for one prompt."""

    columns: list[str] = Described(description="The columns of the rows that were read.")
    n: int = Described(description="The number of rows in the mean: those without an error.")
    mean: dict[str, Any]
    standard_error: dict[str, Any] = Described(
        description="The standard deviation over the rows divided by the square root of their number; 0 for one row."
    )
    rows: list[dict[str, Any]] = Described(
        description="Of each prompt its index, `row`, and its numbers or the `error` that kept it out of the mean."
    )


def check_size(inquiry: Inquiry, row: Numbers) -> None:
    """Raise ``InputError`` if as many rows as were sent, all with as many numbers, would be too large an answer."""
    n_rows, each, most = len(inquiry.values["prompts"]), count(row) - 1, inquiry.ask.limits.max_json_weights
    if n_rows * each > most:
        message = (
            f"The answer would have {n_rows * each:,} numbers, {each:,} for each of {n_rows:,} rows; "
            f"at most {most:,} are sent. Send fewer rows."
        )
        raise InputError("prompts", message)


def count(numbers: Any) -> int:
    """How many numbers there are in nested dictionaries, lists and arrays."""
    if isinstance(numbers, np.ndarray):
        return int(numbers.size)
    parts = numbers.values() if isinstance(numbers, dict) else numbers if isinstance(numbers, list | tuple) else None
    return 1 if parts is None else sum(map(count, parts))


def of_many(base: Question, about: AboutPrompts, fixed: Mapping[str, Any] | None = None) -> Question:
    """The question ``base`` about many prompts, asked as ``about`` says in ``model.lens.prompts``.

    ``fixed`` sets fields of ``base`` that are the same in every row and not in the body.
    """
    averaged, fixed = OVER_PROMPTS[about], dict(fixed or {})
    taken = averaged.columns
    texts = [each.name for each in base.fields if isinstance(each, TextField) or each.below == "n_tokens"]
    kept = [each for each in base.fields if each.name not in {*texts, *taken.values(), *fixed, "per_token"}]
    defaults = {each.name: each.default for each in base.fields if each not in kept and each is not PROMPT}
    reads = ["prompt", *averaged.reads]
    own = {each.name: each for each in base.fields if isinstance(each, TextField)}
    columns = {
        name: replace(own[taken[name]], name=name) if taken.get(name) in own else FIELDS[name]
        for name in averaged.reads
    }

    def row_of(inquiry: Inquiry, row: Mapping[str, Any]) -> Inquiry:
        own = {name: value for name, value in inquiry.values.items() if name != "prompts"}
        values = defaults | averaged.arguments(row, fixed | own)
        return Inquiry(inquiry.ask, inquiry.models, tuple(row["prompt"]), inquiry.head_mask, values)

    def check(inquiry: Inquiry, limits: Limits) -> None:
        for index, row in enumerate(inquiry.values["prompts"]):
            try:
                base.check(row_of(inquiry, row), limits)
            except InputError as error:
                raise in_row(index, error) from None

    def compute(inquiry: Inquiry, progress: Progress) -> Answer:
        def ask(row: Mapping[str, Any], progress: Progress) -> Numbers:
            return averaged.numbers(base.compute(row_of(inquiry, row), progress))

        for found in each_row(inquiry.values["prompts"], ask, progress):
            check_size(inquiry, found)
            inquiry.rows.append(found)
        return {"columns": reads} | average(inquiry.rows).to_dict()

    needed = " ".join(f"`{name}`" for name in averaged.reads)
    rows_help = (
        f"Up to {MAX_ROWS:,} rows: texts, or objects with `prompt` and, optionally, `corrupted`, `answer` and `wrong`. "
        + "Each column may be text or token ids. "
        + (f"Only `prompt` and {needed} are read." if needed else "Only `prompt` is read.")
        + (" For `resample` without a reference, that is each row's corrupted prompt." if averaged.resamples else "")
    )
    return Question(
        f"{base.name}/prompts",
        f"For many prompts: {base.summary[0].lower()}{base.summary[1:]}",
        [PromptsField("prompts", rows_help, columns=columns, required=averaged.required), *kept],
        "The numbers of every prompt, their mean and its standard error.",
        PromptsAnswer,
        compute,
        check,
        endpoint_name=f"{base.endpoint}_prompts",
        less="fewer or shorter prompts",
        body_limit=BODY_LIMIT,
    )
