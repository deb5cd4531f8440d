"""A question asked of many prompts: every row, the mean over the rows, and its standard error."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from pydantic import Field as Described

from model import InputError
from model.errors import InvalidValue, shorten
from model.lens.progress import Progress, part
from model.lens.statistics import mean_and_error

from ..settings import Limits
from .inquiry import Answer, Inquiry
from .question import PROMPT, BodyLimit, Field, ModelAnswer, Question, Subject, TextField, TokenField

MAX_ROWS = 1_000
# The body, its strings, and the token ids made from them.
BODY_LIMIT = BodyLimit(max_bytes=2_000_000, budget_factor=8)

# What a row may hold besides its prompt.
COLUMNS: dict[str, Field] = {
    "corrupted": TextField("corrupted", "A prompt that leads to another answer.", default=None),
    "answer": TokenField("answer", "The token that the prompt leads to.", default=None),
    "wrong": TokenField("wrong", "The token that the corrupted prompt leads to.", default=None),
}

Numbers = dict[str, Any]  # by name: a number, or nested lists or arrays of them


@dataclass(frozen=True)
class PromptsField(Field):
    """Rows of prompts. Each is read as a dictionary with the ids of its prompt, and of its other columns."""

    kind: Any = list[Any]
    is_posted: ClassVar[bool] = True
    columns: Sequence[str] = ()  # that the question reads

    def parse(self, given: Mapping[str, Any], subject: Subject) -> list[dict[str, Any]]:
        return [self.parse_row(index, row, subject) for index, row in enumerate(given[self.name])]

    def parse_row(self, index: int, row: Any, subject: Subject) -> dict[str, Any]:
        read = {"prompt": row} if isinstance(row, str) else row
        try:
            check_row(read)
            return {"prompt": PROMPT.parse(read, subject)} | {
                name: COLUMNS[name].parse(read, subject) for name in self.columns
            }
        except InputError as error:
            raise in_row(index, error) from None


def check_row(row: Any) -> None:
    """Raise ``InputError`` unless a row has the right columns with the right types."""
    if not isinstance(row, dict):
        raise InvalidValue("row", row, "a text, or an object with a prompt")
    for name, value in row.items():
        if name != "prompt" and name not in COLUMNS:
            raise InputError(name, f"There is no column {shorten(name)}, only prompt, {', '.join(COLUMNS)}.")
        may_be_id = name in ("answer", "wrong")
        is_right = isinstance(value, str) or (may_be_id and type(value) is int) or (value is None and name != "prompt")
        if not is_right:
            raise InvalidValue(name, value, "text or a token id" if may_be_id else "text")


def in_row(index: int, error: InputError) -> InputError:
    """The same error, naming the row that it is about."""
    return InputError(f"prompts[{index}].{error.field}", f"prompts[{index}]: {error}", error.code)


class PromptsAnswer(ModelAnswer):
    """The numbers of a question for many prompts, by name; each is a number or nested lists, as for one prompt."""

    columns: list[str] = Described(description="The columns of the rows that were read.")
    n: int = Described(description="The number of rows in the mean: those without an error.")
    mean: dict[str, Any]
    standard_error: dict[str, Any] = Described(
        description="The standard deviation over the rows divided by the square root of their number; 0 for one row."
    )
    rows: list[dict[str, Any]] = Described(
        description="For each prompt its index, `row`, and its numbers, or an `error` that left it out of the mean."
    )


def check_size(inquiry: Inquiry, numbers: Numbers) -> None:
    """Raise ``InputError`` if as many rows as were sent, all with as many ``numbers``, would be too large an answer."""
    n_rows, each, most = len(inquiry.values["prompts"]), count(numbers), inquiry.ask.limits.max_json_weights
    if n_rows * each > most:
        found = f"The answer would have {n_rows * each:,} numbers, {each:,} for each of {n_rows:,} rows"
        raise InputError("prompts", f"{found}; at most {most:,} are sent. Send fewer rows.")


def count(numbers: Any) -> int:
    """How many numbers there are in nested dictionaries, lists and arrays."""
    if isinstance(numbers, np.ndarray):
        return int(numbers.size)
    parts = numbers.values() if isinstance(numbers, dict) else numbers if isinstance(numbers, list | tuple) else None
    return 1 if parts is None else sum(map(count, parts))


def of_many(
    base: Question,
    numbers: Callable[[Answer], Numbers],
    columns: Mapping[str, str] | None = None,
    fixed: Mapping[str, Any] | None = None,
    check_columns: Sequence[str] = (),
) -> Question:
    """The question ``base`` about many prompts.

    ``numbers`` takes what is averaged out of an answer. ``columns`` maps a column of the rows to the field of ``base``
    that it stands for, and ``fixed`` sets fields of ``base`` that are the same in every row and not in the body.
    """
    taken, fixed = dict(columns or {}), dict(fixed or {})
    texts = [each.name for each in base.fields if isinstance(each, TextField) or each.below == "n_tokens"]
    kept = [each for each in base.fields if each.name not in {*texts, *taken.values(), *fixed, "per_token"}]
    defaults = {each.name: each.default for each in base.fields if each not in kept and each is not PROMPT}
    reads = ["prompt", *taken]

    def row_of(inquiry: Inquiry, row: Mapping[str, Any]) -> Inquiry:
        own = {name: value for name, value in inquiry.values.items() if name != "prompts"}
        by_row = {taken[column]: row[column] for column in taken}
        values = defaults | fixed | own | by_row
        return Inquiry(inquiry.ask, inquiry.models, tuple(row["prompt"]), inquiry.head_mask, values)

    def check(inquiry: Inquiry, limits: Limits) -> None:
        for index, row in enumerate(inquiry.values["prompts"]):
            try:
                for name in check_columns:
                    if row[name] is None:
                        raise InputError(name, f"{name} is needed.")
                base.check(row_of(inquiry, row), limits)
            except InputError as error:
                raise in_row(index, error) from None

    def compute(inquiry: Inquiry, progress: Progress) -> Answer:
        prompts, found = inquiry.values["prompts"], list[Numbers]()
        for index, row in enumerate(prompts):
            step = part(progress, index / len(prompts), (index + 1) / len(prompts))
            try:
                own = numbers(base.compute(row_of(inquiry, row), step))
            except InputError as error:  # which only the model can tell, such as two prompts with the same answer
                inquiry.rows.append({"row": index, "error": str(error)})
            else:
                check_size(inquiry, own)
                found.append(own)
                inquiry.rows.append({"row": index, **own})
            step(1)
        if not found:
            raise InputError("prompts", f"No row could be answered. {inquiry.rows[0]['error']}")
        averages = {name: mean_and_error([each[name] for each in found]) for name in found[0]}
        return {
            "columns": reads,
            "n": len(found),
            "mean": {name: mean for name, (mean, _) in averages.items()},
            "standard_error": {name: error for name, (_, error) in averages.items()},
            "rows": list(inquiry.rows),
        }

    needed = " ".join(f"`{name}`" for name in taken)
    rows_help = (
        f"Up to {MAX_ROWS:,} rows: texts, or objects with `prompt` and, optionally, `corrupted`, `answer` and `wrong`. "
        + (f"Read are `prompt` and {needed}." if taken else "Only `prompt` is read.")
    )
    return Question(
        f"{base.name}/prompts",
        f"For many prompts: {base.summary[0].lower()}{base.summary[1:]}",
        [PromptsField("prompts", rows_help, columns=tuple(taken)), *kept],
        "The numbers of every prompt, their mean and its standard error.",
        PromptsAnswer,
        compute,
        check,
        endpoint_name=f"{base.endpoint}_prompts",
        max_seconds=lambda limits: limits.max_reading_seconds,
        body_limit=BODY_LIMIT,
    )
