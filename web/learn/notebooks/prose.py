"""The words of a rung, for its notebook: read from the page's own content, ``web/js/learn/content``."""

import ast
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

CONTENT = Path(__file__).resolve().parents[2] / "js" / "learn" / "content"
# What distinguishes an object of JavaScript from JSON: comments, names without quotes, 'strings', last commas.
SYNTAX = re.compile(r"""("(?:[^"\\]|\\.)*")|('(?:[^'\\]|\\.)*')|//[^\n]*|(\w+)(?=:)|,(?=\s*[\]}])""")
MARKS = re.compile(r"(`[^`]+`)|\[([^\]]+)\](?:\([^)]+\))?|\{\w+\}")


@cache
def content_of(rung: int) -> dict[str, Any]:
    """The content of a rung, counted from 1."""
    (file,) = CONTENT.glob(f"{rung:02d}_*.mjs")
    source = file.read_text(encoding="utf-8")
    start = "export const content = "
    read: dict[str, Any] = json.loads(SYNTAX.sub(as_json, source[source.index(start) + len(start) :].rstrip("\n;")))
    return read


def as_json(found: re.Match[str]) -> str:
    double, single, name = found.groups()
    return double or (json.dumps(ast.literal_eval(single)) if single else f'"{name}"' if name else "")


def main_path(rung: int) -> str:
    """What is read on the main path, as Markdown, without what the page draws."""
    content = content_of(rung)
    parts = []
    for step in content["steps"]:
        parts.append(f"### {step['title']}")
        parts += [as_markdown(entry) for entry in step["text"] if isinstance(entry, str)]
    return "\n\n".join(parts)


def as_markdown(text: str) -> str:
    """A text with the page's marks: terms lose their links, and parts that the page draws are left out."""
    ends = text.endswith("}")  # the page draws the end of the sentence
    text = MARKS.sub(lambda found: found[1] or found[2] or "", text).rstrip()
    if ends and text[-1] not in ".?!":
        text += "."
    return text
