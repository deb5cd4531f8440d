"""The page's own modules and style sheets as one script and one style sheet, for files that open without a server.

The modules are those that ``ENTRY`` imports, directly or through others. In a clone they are in
``web/js``, in an installed package in its folder ``js``.
"""

import base64
import functools
import gzip
import json
import re
from graphlib import TopologicalSorter
from pathlib import Path, PurePosixPath

PACKAGE = Path(__file__).parents[1]
INSTALLED = PACKAGE / "js"
FOLDER = INSTALLED if INSTALLED.is_dir() else PACKAGE.parent / "web" / "js"
ENTRY = "look/saved/main.mjs"
STYLES = ("look/styles", "widgets/styles")

# The page's modules import and export by name only, each import and export in one of these forms.
IMPORT = re.compile(r'^import \{([^}]*)\} from "([^"]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)
OTHER_FORM = re.compile(r"^(?:import|export)\b.*$", re.MULTILINE)
COMMENT = re.compile(r"^ *//.*\n|^ */\*\*(?:(?!\*/)[\s\S])*\*/ *\n", re.MULTILINE)
FONT_FACE = re.compile(r"@font-face \{[^}]*\}\n")  # the files that they name are Gradio's


def imports_of(path: str) -> dict[str, str]:
    """The paths of the modules that a module imports, with the names that it imports from each."""
    source = (FOLDER / path).read_text(encoding="utf-8")
    return {resolve(path, target): names for names, target in IMPORT.findall(source)}


def resolve(path: str, target: str) -> str:
    """The module to which ``target``, a relative path in the module ``path``, refers."""
    parts: list[str] = []
    for part in (PurePosixPath(path).parent / target).parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def modules() -> list[str]:
    """The modules of the viewer, each after those that it imports."""
    graph: dict[str, dict[str, str]] = {}
    waiting = [ENTRY]
    while waiting:
        path = waiting.pop()
        if path not in graph:
            graph[path] = imports_of(path)
            waiting += graph[path]
    return list(TopologicalSorter(graph).static_order())


def as_function(path: str) -> str:
    """A module as a function that returns what it exports; ``modules`` holds what those before it returned."""
    source = COMMENT.sub("", (FOLDER / path).read_text(encoding="utf-8"))
    source = source.replace("import.meta.url", "document.baseURI")  # a file fetches nothing, so any base will do
    exported = EXPORT.findall(source)
    source = EXPORT.sub("", IMPORT.sub(lambda match: as_constants(path, *match.groups()), source))
    if other := OTHER_FORM.search(source):
        raise ValueError(f"{path}: the bundle knows no {other.group()!r}")
    return f"modules[{json.dumps(path)}] = (() => {{\n{source}return {{ {', '.join(exported)} }};\n}})();\n"


def as_constants(path: str, names: str, target: str) -> str:
    return f"const {{{re.sub(r' as ', ': ', names)}}} = modules[{json.dumps(resolve(path, target))}];\n"


@functools.cache
def script() -> str:
    """All modules as one classic script, which calls the entry's ``start``."""
    body = "".join(as_function(path) for path in modules())
    return f'"use strict";\n(() => {{\nconst modules = {{}};\n{body}modules[{json.dumps(ENTRY)}].start();\n}})();\n'


@functools.cache
def style() -> str:
    """All style sheets as one, without web fonts."""
    paths = [path for folder in STYLES for path in sorted((FOLDER / folder).rglob("*.css"))]
    source = "".join(path.read_text(encoding="utf-8") for path in paths)
    return FONT_FACE.sub("", re.sub(r"/\*[\s\S]*?\*/", "", source))


@functools.cache
def packed() -> str:
    """Style sheet and script as the file holds them: JSON, compressed, in base64."""
    return pack(json.dumps({"style": style(), "script": script()}).encode())


def pack(data: bytes) -> str:
    """Bytes as text for a file: compressed, in base64."""
    return base64.b64encode(gzip.compress(data, compresslevel=6, mtime=0)).decode()
