"""What Gradio's endpoints take: anything else is refused in words before Gradio fails on it."""

import json
from functools import cached_property
from typing import Any

import gradio as gr

from model.errors import counted, shorten

from ..settings import MAX_RUN_ID

MAX_ARGUMENTS = 64
MAX_VALUES = 10_000


class BadCall(Exception):
    """A call that makes no sense: the status of its answer, and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


class Calls:
    """The events of an app, by index and by name."""

    def __init__(self, demo: gr.Blocks) -> None:
        self.demo = demo

    @cached_property
    def by_name(self) -> dict[str, Any]:
        return {fn.api_name: fn for fn in self.demo.fns.values() if isinstance(fn.api_name, str)}

    @cached_property
    def parameters(self) -> dict[str, dict[str, bool]]:
        """Of each endpoint the names of its parameters, and whether they may be left out."""
        endpoints = self.demo.get_api_info()["named_endpoints"]
        return {
            name.lstrip("/"): {each["parameter_name"]: each["parameter_has_default"] for each in endpoint["parameters"]}
            for name, endpoint in endpoints.items()
        }

    def read(self, body: bytes, name: str | None, *, by_keyword: bool) -> dict[str, Any]:
        """The fields of a body for the endpoint ``name``, or None for the queue itself. Raises ``BadCall``."""
        fields = read_json(body)
        if by_keyword:
            self.check_keywords(name or "", fields)
            return {}
        session = fields.get("session_hash")
        if (session is not None or name is None) and not (isinstance(session, str) and 0 < len(session) <= MAX_RUN_ID):
            raise BadCall(422, f"session_hash must be a string of 1 to {MAX_RUN_ID} characters.")
        index, data = fields.get("fn_index"), fields.get("data")
        fn = self.by_name.get(name) if name is not None else self.demo.fns.get(index) if type(index) is int else None
        if fn is None:
            raise BadCall(404, f"There is no endpoint {shorten(index if name is None else name)}.")
        if not isinstance(data, list) or len(data) > MAX_ARGUMENTS:
            raise BadCall(422, f"data must be a list of at most {MAX_ARGUMENTS} arguments.")
        if len(data) != len(fn.inputs):
            raise BadCall(422, f"{counted(len(fn.inputs), 'argument')} needed, found {len(data)}.")
        return fields

    def check_keywords(self, name: str, fields: dict[str, Any]) -> None:
        parameters = self.parameters.get(name)
        if parameters is None:
            raise BadCall(404, f"There is no endpoint {shorten(name)}.")
        if unknown := [field for field in fields if field not in parameters]:
            raise BadCall(422, f"There is no argument {shorten(unknown[0])}.")
        if missing := [field for field, may_miss in parameters.items() if not may_miss and field not in fields]:
            raise BadCall(422, f"{missing[0]} is missing.")


def read_json(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body)  # which reads NaN, as Gradio does
    except (ValueError, RecursionError) as error:
        raise BadCall(422, f"The body is not valid JSON: {str(error)[:200]}.") from None
    if not isinstance(fields, dict):
        raise BadCall(422, "The body must be a JSON object.")
    if has_more_values(fields, MAX_VALUES):
        raise BadCall(422, f"The body holds more than {MAX_VALUES:,} values.")
    return fields


def has_more_values(value: Any, most: int) -> bool:
    """Whether there are more than so many values in lists and objects: Gradio copies each of them several times."""
    left, count = [value], 0
    while left:
        inner = left.pop()
        count += len(inner)
        if count > most:
            return True
        items = inner.values() if isinstance(inner, dict) else inner
        left += [item for item in items if isinstance(item, list | dict)]
    return False
