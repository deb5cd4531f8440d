"""The process that renders one chat template: a line of JSON in, a line of JSON out, until stdin ends.

Nothing but Jinja is imported, and the memory is bounded, since a template is a program by the author of a checkpoint.
"""

import json
import sys
from functools import lru_cache
from typing import Any

from jinja2 import Template, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

READY = b"ready\n"
MAX_BYTES = 400_000_000  # of memory, in all
MAX_CHARACTERS = 1_000_000  # of a rendered conversation
MAX_ERROR = 300


def main() -> None:
    bound_memory()
    answers = sys.stdout.buffer
    answers.write(READY)
    answers.flush()
    for line in sys.stdin.buffer:
        answers.write(json.dumps(answer(json.loads(line))).encode() + b"\n")
        answers.flush()


def answer(asked: dict[str, Any]) -> dict[str, str]:
    """``{"text"}`` or ``{"error"}`` for ``{"template", "context"}``."""
    try:
        text = compiled(asked["template"]).render(**asked["context"])
    except Exception as error:  # a template is a program, and may raise anything
        return {"error": (str(error) or type(error).__name__)[:MAX_ERROR]}
    if len(text) > MAX_CHARACTERS:
        return {"error": f"it makes a prompt of {len(text):,} characters"}
    return {"text": text}


@lru_cache(maxsize=1)
def compiled(source: str) -> Template:
    """A template in a sandbox: it can neither change what it is given nor reach into Python."""
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = refuse
    return environment.from_string(source)


def refuse(message: str) -> None:
    """What templates call for a conversation they were not made for."""
    raise TemplateError(message)


def bound_memory() -> None:
    if sys.platform != "win32":
        import resource  # Windows does not have it

        resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))


if __name__ == "__main__":
    main()
