"""``docs/answers.md`` lists the options and fields of every answer as they are declared.

Write it after a question has changed: ``PYTHONPATH=.:tests python tests/unit/repository/test_answers.py``
"""

import inspect
import re
from types import UnionType
from typing import Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from helpers.files import ROOT
from model import LoadedModel
from model.lens.answer import Answer, Shape, first_paragraph, words_of
from model.lens.lens import Method
from model.lens.question import options_of

FILE = ROOT / "docs" / "answers.md"
HEADER = """# Answers: options and fields

What each method of a loaded model takes and returns, made from the declarations ([how to use them](python.md#ask)). A
text is a string, token ids, or a trace. Tensors are float32 on the CPU unless their numbers are ids or positions. Every
answer also has `precision`, `to_dict()`, `to_arrays()` and `show()`.
"""


def answers() -> str:
    """The content of the file."""
    parts = [HEADER]
    for name, method in vars(LoadedModel).items():
        if isinstance(method, Method):
            parts.append(described(name, method))
    return "\n".join(parts)


def described(name: str, method: Method[Any, Any]) -> str:
    """One method: its call, its options that need words, and the fields of its answer."""
    parameters = list(inspect.signature(method.method).parameters.values())[1:]
    given = [str(each.replace(annotation=each.empty)).replace(" = ", "=") for each in parameters]
    call = re.sub(r"=<function \w+ at \w+>", "=...", ", ".join(given))
    lines = [f"## {name}", "", f"    loaded.{name}({call})", "", documented(method.question), ""]
    lines += [f"- `{option.name}`: {option.help}" for option in options_of(method.question)]
    found = get_type_hints(method.question)["return"]
    rows = fields_of(found) if hasattr(found, "__dataclass_fields__") else []
    lines += [""] if lines[-1] else []
    if not rows:
        return "\n".join([*lines, f"Returns `{kind_in_words(found)}`.", ""])
    about = f"Returns `{found.__name__}`. {documented(found)}"
    return "\n".join([*lines, about, "", "| field | what |", "| --- | --- |", *rows, ""])


def documented(member: Any) -> str:
    """A docstring as Markdown."""
    return (inspect.getdoc(member) or "").replace("``", "`")


def fields_of(answer: Any) -> list[str]:
    """A row for each field and property of a dataclass."""
    rows = []
    for name, hint in get_type_hints(answer, include_extras=True).items():
        if get_origin(hint) is not ClassVar and (name not in Answer.__annotations__ or answer is Answer):
            sentences = [word for word in getattr(hint, "__metadata__", ()) if isinstance(word, str)]
            rows.append(row(name, hint, sentences[-1] if sentences else ""))
    for name, member in inspect.getmembers(answer, lambda member: isinstance(member, property)):
        if name not in vars(Answer) and not name.startswith("_"):
            hint = get_type_hints(member.fget, include_extras=True)["return"]
            rows.append(row(name, hint, first_paragraph(member.fget)))
    return rows


def row(name: str, hint: Any, sentence: str) -> str:
    return f"| `{name}` | `{kind_in_words(hint)}`{': ' if sentence else ''}{sentence} |"


def kind_in_words(hint: Any) -> str:
    """A type as a reader knows it; of a tensor its axes."""
    choices = [choice for choice in get_args(hint) if choice is not type(None)]
    shapes = [word for word in words_of(hint) if isinstance(word, Shape)]
    if get_origin(hint) in (Union, UnionType):
        return " or ".join([*map(kind_in_words, choices), *(["None"] if len(choices) < len(get_args(hint)) else [])])
    if hasattr(hint, "__metadata__") and not shapes:
        return kind_in_words(hint.__origin__)
    if hasattr(hint, "__metadata__"):
        axes = shapes[0].axes
        return f"({', '.join(axes)}{',' if len(axes) == 1 else ''})"
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, choices))
    if not choices or choices == [...]:
        return getattr(hint, "__name__", str(hint))
    of = ", ".join("..." if choice is ... else kind_in_words(choice) for choice in choices)
    return f"{get_origin(hint).__name__}[{of}]"


def test_the_listed_options_and_fields_are_those_declared() -> None:
    assert FILE.read_text(encoding="utf-8") == answers(), "write it again: see the first lines of this file"


if __name__ == "__main__":
    FILE.write_text(answers(), encoding="utf-8")
