"""A question asked of many prompts: every row, the mean over the rows, and its standard error."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
from pydantic import Field as Described

from model import InputError
from model.lens.answer import first_paragraph
from model.lens.progress import Progress
from model.lens.prompts import (
    COLUMNS,
    OVER_PROMPTS,
    AboutPrompts,
    Numbers,
    average,
    check_as_long,
    each_row,
    in_row,
    is_by_position,
)
from model.lens.question import REQUIRED, Option, Reads, options_of

from ..settings import Limits
from .answers import ModelAnswer, NamedToken
from .fields import MAX_ROWS, TEXTS, RowsOption
from .inquiry import Content, Inquiry, to_json
from .question import ROWS, Question, answer_with
from .service import AnswerService


class PromptsAnswer(ModelAnswer):
    """The numbers of a question for many prompts, by name; each is a number or nested lists, as for one prompt."""

    columns: list[str] = Described(description="The columns of the rows that were read.")
    n: int = Described(description="The number of rows in the mean: those without an error.")
    mean: dict[str, Any]
    standard_error: dict[str, Any] = Described(
        description="The standard deviation over the rows divided by the square root of their number; 0 for one row."
    )
    tokens: list[NamedToken] | None = Described(
        None, description="Of a mean position by position, the tokens of the first row; otherwise null."
    )
    rows: list[dict[str, Any]] = Described(
        description="Of each prompt its index, `row`, and its numbers or the `error` that kept it out of the mean."
    )


def check_size(limits: Limits, inquiry: Inquiry, row: Numbers) -> None:
    """Raise ``InputError`` if as many rows as were sent, all with as many numbers, would be too large an answer."""
    n_rows, each, most = len(inquiry.values["prompts"]), count(row) - 1, limits.max_json_weights
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


def of_many(base: Question, about: AboutPrompts, defaults: Mapping[str, Any] | None = None) -> Question:
    """The question ``base`` about many prompts, asked as ``about`` says in ``model.lens.prompts``.

    ``defaults`` are those of options that differ from the defaults of ``base``.
    """
    averaged = OVER_PROMPTS[about]
    own = {option.name: option for option in options_of(averaged.question)}
    # What differs from row to row, and what is the same in all of them and not in the body.
    given = {*averaged.columns.values(), *averaged.fixed}
    kept = [
        replace(field, default={**averaged.defaults, **(defaults or {})}.get(field.name, field.default))
        for field in base.fields
        if field.name not in given
        and field.reads not in TEXTS
        and field.within.below != "n_tokens"
        and (field.name in own or field.reads in (Reads.MODEL, Reads.HEAD_MASK))
    ]
    columns = {name: column(name, own.get(averaged.columns.get(name, ""))) for name in averaged.reads}
    by_default = {field.name: field.default for field in base.fields} | dict(averaged.fixed)

    def row_of(inquiry: Inquiry, row: Mapping[str, Any]) -> Inquiry:
        options = {name: value for name, value in inquiry.values.items() if name != "prompts"}
        values = averaged.arguments(row, {**averaged.fixed, **options})
        return Inquiry(inquiry.models, tuple(row["prompt"]), inquiry.head_mask, values)

    def check(inquiry: Inquiry, limits: Limits) -> None:
        for index, row in enumerate(inquiry.values["prompts"]):
            asked = row_of(inquiry, row)
            try:
                base.check(replace(asked, values=by_default | asked.values), limits)
            except InputError as error:
                raise in_row(index, error) from None

    def compute(service: AnswerService, inquiry: Inquiry, progress: Progress, rows: list[bytes]) -> Content:
        first = inquiry.values["prompts"][0]["prompt"] if is_by_position(inquiry.values) else None

        def answer_row(row: Mapping[str, Any], progress: Progress) -> Numbers:
            if first is not None:
                check_as_long(row["prompt"], first)
            answer = answer_with(averaged.question, service, row_of(inquiry, row), progress)
            return averaged.numbers(base.encode(answer))

        found = list[Numbers]()
        for row in each_row(inquiry.values["prompts"], answer_row, progress):
            check_size(service.limits, inquiry, row)
            found.append(row)
            rows.append(to_json(row))
        tokens = None if first is None else [token._asdict() for token in inquiry.loaded.text_tokens(first)]
        sent = {"tokens": tokens, "rows": list(map(orjson.Fragment, rows))}
        return {"columns": ["prompt", *averaged.reads]} | average(found).to_dict() | sent

    needed = " ".join(f"`{name}`" for name in averaged.reads)
    rows_help = (
        f"Up to {MAX_ROWS:,} rows: texts, or objects with `prompt` and, optionally, `corrupted`, `answer` and `wrong`. "
        + "Each column may be text or token ids. "
        + (f"Only `prompt` and {needed} are read." if needed else "Only `prompt` is read.")
        + (" For `resample` without a reference, that is each row's corrupted prompt." if averaged.resamples else "")
    )
    rows = RowsOption(
        "prompts",
        list[Any],
        REQUIRED,
        rows_help,
        reads=Reads.ROWS,
        columns=columns,
        required=averaged.required,
    )
    summary = first_paragraph(averaged.question)
    return Question(
        name=f"{base.name}/prompts",
        summary=f"For many prompts: {summary[0].lower()}{summary[1:]}",
        fields=[rows, *kept],
        returns="The numbers of every prompt, their mean and its standard error.",
        answer=PromptsAnswer,
        compute=compute,
        check=check,
        endpoint=f"{base.endpoint}_prompts",
        less="fewer or shorter prompts",
        body_limit=ROWS,
    )


def column(name: str, own: Option | None) -> Option:
    """How a column of the rows is read: as the option ``own`` of the question, if it is a text, or as usual."""
    return replace(own, name=name) if own is not None and own.reads in TEXTS else COLUMNS[name]
