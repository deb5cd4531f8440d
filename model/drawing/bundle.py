"""The page's own modules as a few scripts, and its style sheets as a few sheets: for the page, and for HTML files.

Every module becomes a function in a script, which runs once and after those that it imports. In a clone the modules
are in ``web/js``, in an installed package in its folder ``js``.
"""

import base64
import functools
import gzip
import json
import re
from collections.abc import Collection, Sequence
from graphlib import TopologicalSorter
from pathlib import Path, PurePosixPath

PACKAGE = Path(__file__).parents[1]
INSTALLED = PACKAGE / "js"
FOLDER = INSTALLED if INSTALLED.is_dir() else PACKAGE.parent / "web" / "js"
ENTRY = "look/saved/main.mjs"
STYLES = ("widgets/styles/*.css", "look/styles/**/*.css")
PAGE = "widgets/styles/page.css"
# How the paths of the kit's sheets begin, of the tabs', the stage's, and of the one that hides elements.
LAYERS = (("widgets/",), ("learn/", "look/", "train/", "use/"), ("look/styles/stage/",), ("widgets/styles/shown.css",))
ROOTS = {"learn": ".hl-page", "train": ".ht-page", "use": ".hu-page"}  # by folder; others hold for all

# The modules import and export by name only, and load or name other files, in these forms alone.
IMPORT = re.compile(r'^import \{([^}]*)\} from "([^"]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)
EXPORT_LIST = re.compile(r"export ?\{([^}]*)\};?\s*(?://# sourceMappingURL=.*\s*)?\Z")  # at the end, as minifiers write
LISTED = re.compile(r"(\w+)(?: as (\w+))?")
LATER = re.compile(r'import\("([^"]+)"\)')
ASSET = re.compile(r'new URL\("([^"]+)", import\.meta\.url\)')
OTHER_FORM = re.compile(r"[ei][mx]port(?:(?<=\n.{6})\b| ?\{|\(|\.meta).*")
COMMENT = re.compile(r"^ *//.*\n|^ */\*\*(?:(?!\*/)[\s\S])*\*/ *\n|/\*\*(?:(?!\*/)[\s\S])*\*/ ?", re.MULTILINE)
KEYFRAMES = re.compile(r"^@keyframes [\s\S]*?^\}\n", re.MULTILINE)


@functools.cache
def source(path: str) -> str:
    """A module without comments."""
    return COMMENT.sub("", (FOLDER / path).read_text(encoding="utf-8"))


def imports_of(path: str) -> list[str]:
    """The modules that a module imports."""
    return [resolve(path, target) for _, target in IMPORT.findall(source(path))]


def imported_later(paths: Collection[str]) -> list[str]:
    """The modules that these modules import only when they need them."""
    return [resolve(path, target) for path in paths for target in LATER.findall(source(path))]


def resolve(path: str, target: str) -> str:
    """The file to which ``target``, a relative path in the module ``path``, refers."""
    parts: list[str] = []
    for part in (PurePosixPath(path).parent / target).parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def modules(entries: Sequence[str], without: Collection[str] = (), later: bool = True) -> list[str]:
    """The entries and what they import, directly or through others, each after what it imports itself.

    Modules in ``without`` belong to another script. ``later``: also those that are imported later.
    """
    graph: dict[str, list[str]] = {}
    waiting = [*entries]
    while waiting:
        path = waiting.pop()
        if path not in graph and path not in without:
            graph[path] = [each for each in imports_of(path) if each not in without]
            waiting += graph[path]
            if later:
                waiting += imported_later([path])
    return list(TopologicalSorter(graph).static_order())


def as_functions(paths: Sequence[str]) -> str:
    """These modules as functions, which fill ``modules`` with what each exports.

    A script defines before them ``modules``; ``load``, which gives a module that is imported later; and ``address``,
    which gives the address of a file that is not a module. Raises ``ValueError`` for code that it cannot convert.
    """
    return "".join(as_function(path) for path in paths)


def exports_of(path: str) -> dict[str, str]:
    """What a module exports, by name, and what it calls this itself."""
    names = {name: name for name in EXPORT.findall(source(path))}
    if found := EXPORT_LIST.search(source(path)):
        names |= {outside or own: own for own, outside in LISTED.findall(found[1])}
    return names


def as_function(path: str) -> str:
    exported = [f"{name}: {own}" for name, own in exports_of(path).items()]
    code = EXPORT.sub("", EXPORT_LIST.sub("", source(path)))
    code = IMPORT.sub(lambda match: as_constants(path, *match.groups()), code)
    code = LATER.sub(lambda match: f"load({json.dumps(resolve(path, match[1]))})", code)
    code = ASSET.sub(lambda match: f"address({json.dumps(resolve(path, match[1]))})", code)
    if other := OTHER_FORM.search(f"\n{code}"):
        raise ValueError(f"{path}: the bundle knows no {other.group()!r}")
    return f"modules[{json.dumps(path)}] = (() => {{\n{code}\nreturn {{ {', '.join(exported)} }};\n}})();\n"


def as_constants(path: str, names: str, target: str) -> str:
    return f"const {{{re.sub(r' as ', ': ', names)}}} = modules[{json.dumps(resolve(path, target))}];\n"


def style(patterns: Sequence[str] = STYLES) -> str:
    """The style sheets that match these patterns as one, in their order: of equal rules, the last one holds."""
    paths = [path for pattern in patterns for path in sorted(FOLDER.glob(pattern))]
    return "".join(scoped(path.relative_to(FOLDER).as_posix()) for path in paths)


def root_of(path: str) -> str:
    """The selector of the elements that the rules of a style sheet hold within."""
    return "body" if path == PAGE else ROOTS.get(path.partition("/")[0], ".headscope")


def layer_of(path: str) -> int:
    """The number of a style sheet's layer: its rules outweigh every rule of a lower one, whatever their selectors."""
    return max(number for number, starts in enumerate(LAYERS) if path.startswith(starts))


def scoped(path: str) -> str:
    """A style sheet whose rules hold within its root only, which ``&`` stands for.

    Each outweighs Gradio's, which are in no ``@layer`` and so would outweigh all that are in one: an id that no
    element has counts in each, once more for each layer.
    """
    rules = re.sub(r"/\*[\s\S]*?\*/", "", (FOLDER / path).read_text(encoding="utf-8"))
    animations = "".join(KEYFRAMES.findall(rules))  # which no rule may contain
    weight = ":not(#hs)" * layer_of(path)
    return f"{animations}:is(#hs, {root_of(path)}){weight} {{\n{KEYFRAMES.sub('', rules)}}}\n"


def script() -> str:
    """The viewer of HTML files as one classic script, which calls the entry's ``start``. It fetches nothing."""
    body = as_functions(modules([ENTRY]))
    return (
        '"use strict";\n(() => {\nconst modules = {};\nconst load = async (path) => modules[path];\n'
        f"const address = () => document.baseURI;\n{body}modules[{json.dumps(ENTRY)}].start();\n}})();\n"
    )


@functools.cache
def packed() -> str:
    """Style sheet and script as the file holds them: JSON, compressed, in base64."""
    return pack(json.dumps({"style": style(), "script": script()}).encode())


def pack(data: bytes) -> str:
    """Bytes as text for a file: compressed, in base64."""
    return base64.b64encode(gzip.compress(data, compresslevel=6, mtime=0)).decode()
