"""The process that renders one chat template: it reads and writes lines of JSON until stdin ends.

It imports only Jinja and limits its memory, because a template is a program written by the author of a checkpoint.
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
    """Answer ``{"template", "context"}`` with ``{"text"}`` or ``{"error"}``."""
    try:
        text = compiled(asked["template"]).render(**asked["context"])
    except Exception as error:  # a template is a program and may raise anything
        return {"error": (str(error) or type(error).__name__)[:MAX_ERROR]}
    if len(text) > MAX_CHARACTERS:
        return {"error": f"it produces a prompt of {len(text):,} characters"}
    return {"text": text}


@lru_cache(maxsize=1)
def compiled(source: str) -> Template:
    """Compile a template in a sandbox: it can neither modify its arguments nor reach Python's internals."""
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = refuse
    return environment.from_string(source)


def refuse(message: str) -> None:
    """The function that templates call when they do not support a conversation."""
    raise TemplateError(message)


def bound_memory() -> None:
    if sys.platform != "win32":
        import resource  # not available on Windows

        resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))


if __name__ == "__main__":
    main()
