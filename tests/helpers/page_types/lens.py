"""The types of Ask's bodies and answers for the page's modules, made from the declared questions.

Write them after a question has changed: ``PYTHONPATH=.:tests python -m helpers.page_types.lens``
"""

import json
from typing import Any

from pydantic import BaseModel

from helpers.files import ROOT
from web.api.lens import BODIES
from web.ask.table import QUESTIONS

FILE = ROOT / "web" / "js" / "lens.d.ts"
HEADER = """/** The bodies and answers of `/v1/lens/`. Made from web/ask by helpers/page_types/lens.py: do not edit. */
"""
PLAIN = {"integer": "number", "number": "number", "string": "string", "boolean": "boolean", "null": "null"}


def lens_types() -> str:
    """The content of ``lens.d.ts``."""
    interfaces: dict[str, str] = {}
    rows = []
    for question in QUESTIONS:
        body, answer = BODIES[question.name], question.answer
        add(interfaces, answer)
        add(interfaces, body, without={"stream"})
        fields = f'{{ method: "{question.method}"; body: {body.__name__}; answer: {answer.__name__} }}'
        rows.append(f"  {key(question.name)}: {fields};")
    questions = "\n".join(["/** By what follows `/v1/lens/`. */", "export interface Questions {", *rows, "}"])
    return "\n".join([HEADER, *(f"{text}\n" for text in interfaces.values()), questions, ""])


def add(interfaces: dict[str, str], model: type[BaseModel], without: set[str] | None = None) -> None:
    """Add the interface of a model, and those that it refers to."""
    schema = model.model_json_schema(ref_template="{model}")
    defined = schema.get("$defs", {})
    for name, each in {**defined, model.__name__: schema}.items():
        if each.get("type") == "object" and "properties" in each:
            required = each.get("required", [])
            fields = [
                f"  {key(field)}{'' if field in required else '?'}: {typescript(content, defined)};"
                for field, content in each["properties"].items()
                if field not in (without or ())
            ]
            interfaces[name] = "\n".join([f"export interface {name} {{", *fields, "}"])


def key(name: str) -> str:
    return name if name.isidentifier() else json.dumps(name)


def typescript(schema: dict[str, Any], defined: dict[str, Any]) -> str:
    if not schema:
        return "unknown"
    match schema:
        case {"$ref": str(name)}:
            target = defined[name]
            return name if "properties" in target else typescript(target, defined)
        case {"anyOf": choices}:
            return " | ".join(typescript(choice, defined) for choice in choices)
        case {"const": value}:
            return json.dumps(value)
        case {"enum": values}:
            return " | ".join(map(json.dumps, values))
        case {"prefixItems": items}:
            return f"[{', '.join(typescript(item, defined) for item in items)}]"
        case {"type": "array", "items": items}:
            item = typescript(items, defined)
            return f"({item})[]" if " | " in item else f"{item}[]"
        case {"type": [*kinds]}:
            return " | ".join(PLAIN[kind] for kind in kinds)
        case {"type": "object", "properties": dict(fields), "required": list(required)}:
            parts = [
                f"{key(name)}{'' if name in required else '?'}: {typescript(each, defined)}"
                for name, each in fields.items()
            ]
            return f"{{ {'; '.join(parts)} }}"
        case {"type": "object", "additionalProperties": True}:
            return "Record<string, unknown>"
        case {"type": "object", "additionalProperties": values}:
            names = schema.get("propertyNames", {"type": "string"})
            return f"Record<{typescript(names, defined)}, {typescript(values, defined)}>"
        case {"type": str(kind)}:
            return PLAIN[kind]
    raise ValueError(f"No type for {schema}")


if __name__ == "__main__":
    FILE.write_text(lens_types(), encoding="utf-8")
