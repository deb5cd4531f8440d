"""The types of the lessons' numbers for the page's modules, inferred from the lessons' answers to some requests.

Write them after a lesson has changed: ``PYTHONPATH=.:tests python -m helpers.page_types.learn``
"""

import contextlib
import json
from collections.abc import Iterable
from typing import Any

import orjson

from helpers.files import ROOT
from model import InputError
from web.learn.lessons import LESSONS
from web.serving.served_models import ServedModels
from web.serving.snapshots import Snapshots
from web.settings import Settings

FILE = ROOT / "web" / "js" / "learn" / "data.d.ts"
HEADER = """/** The lessons' numbers. Inferred from answers by helpers/page_types/learn.py: do not edit. */

/** The names of the numbers of a lesson that are of this type. */
export type Named<Key extends keyof Data, Type> = {
  [Name in keyof Data[Key]]: Data[Key][Name] extends Type ? Name : never;
}[keyof Data[Key]] &
  string;

/** By the name that the lesson is asked for with. */
export interface Data {
"""
CHECKPOINTS = ("stories-bpe", "two-layer-steps")
SENTENCES = ("Your journey starts with one step", "What is in a name? <|endoftext|> é", "Hello", "- a " * 7)
# Settings that add something to an answer or leave something out.
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "tokens": [{"merges": 0}],
    "averages": [{"lecture": True}, {"lecture": False}],
    "self-attention": [{"factor": 1000}, {"swapped": True}],
    "trainable-weights": [
        {"kind": "reader"},
        {"vectors": "random"},
        {"matrices": {role: [[0.5, 1], [0, 1], [2, 1]] for role in ("query", "key", "value")}},
    ],
    "transfer": [{"transfer": {"query": "transposed", "key": "own", "value": "own"}}],
    "whole-model": [{"model": "two-layer-steps"}, {"query": 0}],
    "kite": [{"muted": [[4, 3]]}],
    "induction": [{"model": "two-layer-steps", "muted": [0, 0]}],
}
MAX_OBJECT = 70  # characters of an object that is written on one line
SKIPPED = {"cell", "number", "draw"}  # whose answers depend on what is asked


def learn_types() -> str:
    """The content of ``data.d.ts``."""
    with_models, without = (
        Snapshots(ServedModels(Settings(checkpoints=checkpoints, device="cpu"))) for checkpoints in (CHECKPOINTS, ())
    )
    for snapshots in (with_models, without):
        snapshots.served.load()
    rows = []
    for name, lesson in LESSONS.items():
        if name not in SKIPPED:
            has_sentence = "sentence" in lesson.request.model_fields
            asked = [
                {"sentence": sentence} | settings if has_sentence else settings
                for sentence in (SENTENCES if has_sentence else ("",))
                for settings in [{}, *SETTINGS.get(name, [])]
            ]
            requests = [lesson.request.model_validate(body) for body in asked]
            answers = [lesson.answer(with_models, each) for each in requests]
            with contextlib.suppress(InputError):  # of lessons that need a model
                answers += [lesson.answer(without, each) for each in requests]
            rows.append(f"  {key(name)}: {typescript([orjson.loads(orjson.dumps(each)) for each in answers], '  ')};")
    return "\n".join([HEADER.rstrip(), *rows, "}", ""])


def key(name: str) -> str:
    return name if name.isidentifier() else json.dumps(name)


def typescript(values: Iterable[Any], indent: str) -> str:
    """A type that holds all of the values."""
    values = list(values)
    kinds: list[str] = []
    for value in values:
        match value:
            case None:
                kinds.append("null")
            case bool():
                kinds.append("boolean")
            case int() | float():
                kinds.append("number")
            case str():
                kinds.append("string")
    lists = [value for value in values if isinstance(value, list)]
    if lists and is_pair(lists):
        kinds.append(f"[{', '.join(typescript(each, indent) for each in zip(*lists, strict=True))}]")
    elif lists:
        inner = typescript([each for value in lists for each in value], indent)
        kinds.append(f"({inner})[]" if is_union(inner) else f"{inner}[]")
    if objects := [value for value in values if isinstance(value, dict)]:
        names = list(dict.fromkeys(name for value in objects for name in value))
        fields = [
            f"{indent}  {key(name)}{'' if all(name in value for value in objects) else '?'}: "
            f"{typescript([value[name] for value in objects if name in value], indent + '  ')};"
            for name in names
        ]
        line = " ".join(["{", *(field.strip() for field in fields), "}"]).replace("; }", " }")
        fits = "\n" not in line and len(line) <= MAX_OBJECT
        kinds.append(line if fits else "\n".join(["{", *fields, f"{indent}}}"]))
    kinds = sorted(dict.fromkeys(kinds), key=lambda kind: kind == "null")
    return " | ".join(kinds) or "never"


def is_pair(lists: list[list[Any]]) -> bool:
    """Whether the lists are pairs of a string and a number."""
    return all(len(each) == 2 and isinstance(each[0], str) and isinstance(each[1], int) for each in lists)


def is_union(kind: str) -> bool:
    """Whether a type is a union, rather than an object or a list with one inside."""
    depth = 0
    for character in kind:
        depth += (character in "{(") - (character in "})")
        if character == "|" and not depth:
            return True
    return False


if __name__ == "__main__":
    FILE.write_text(learn_types())
