"""The process that renders one chat template: it reads and writes lines of JSON until stdin ends.

It imports only Jinja and limits its memory, because a template is a program written by the author of a checkpoint.
"""

import json
import sys
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from typing import Any

from jinja2 import Template, TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.nodes import Node, Scope
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

READY = b"ready\n"
MAX_BYTES = 400_000_000  # of memory, in all
MAX_CHARACTERS = 1_000_000  # of a rendered conversation
MAX_ERROR = 300


def main() -> None:
    bound_address_space()
    answers = sys.stdout.buffer
    answers.write(READY)
    answers.flush()
    for line in sys.stdin.buffer:
        answers.write(json.dumps(answer(json.loads(line))).encode() + b"\n")
        answers.flush()


def answer(asked: dict[str, Any]) -> dict[str, str]:
    """Answer ``{"template", "context"}`` with ``{"text"}`` or ``{"error"}``."""
    try:
        text = compiled(asked["template"]).render(asked["context"])
    except Exception as error:  # a template is a program and may raise anything
        return {"error": (str(error) or type(error).__name__)[:MAX_ERROR]}
    if len(text) > MAX_CHARACTERS:
        return {"error": f"it produces a prompt of {len(text):,} characters"}
    return {"text": text}


@lru_cache(maxsize=1)
def compiled(source: str) -> Template:
    """Compile a template in a sandbox: it can neither modify its arguments nor reach Python's internals.

    Templates are written for transformers: they find the tags, filters and functions that it has.
    """
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, loopcontrols]
    )
    environment.filters["tojson"] = to_json
    environment.globals |= {"raise_exception": refuse, "strftime_now": strftime_now}
    return environment.from_string(source)


class GenerationTag(Extension):
    """``{% generation %}`` marks what an assistant says, for training. Here it changes nothing."""

    tags = {"generation"}  # noqa: RUF012 - as Jinja declares it

    def parse(self, parser: Parser) -> Node:
        line = next(parser.stream).lineno
        return Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True)).set_lineno(line)


def to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Unlike Jinja's own filter, it escapes no HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def strftime_now(format: str) -> str:
    return datetime.now().strftime(format)


def refuse(message: str) -> None:
    """The function that templates call when they do not support a conversation."""
    raise TemplateError(message)


def bound_address_space() -> None:
    """Let this process have ``MAX_BYTES`` of addresses, however it gets memory, where the system can limit that."""
    if sys.platform != "win32":
        import resource  # not available on Windows

        with suppress(ValueError, OSError):  # a lower limit exists, or macOS refuses this one
            resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))


if __name__ == "__main__":
    main()
