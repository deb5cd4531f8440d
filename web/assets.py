"""Serves what the page loads from ``web/js``: scripts, style sheets and data. All their addresses contain one version.

The modules are joined to a few scripts. With ``--dev``, the page loads them one by one instead.
"""

import functools
import gzip
import hashlib
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import brotli
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from model.drawing import bundle

FOLDER = Path(__file__).parent / "js"
MEDIA_TYPES = {".mjs": "text/javascript", ".css": "text/css", ".json": "application/json"}
FILES = {path.relative_to(FOLDER).as_posix(): path for path in sorted(FOLDER.rglob("*")) if path.suffix in MEDIA_TYPES}
# In the path, not in a query: modules that import each other by relative names inherit it.
SOURCES = [*FILES.values(), Path(bundle.__file__), Path(__file__)]
VERSION = hashlib.sha256(b"".join(path.read_bytes() for path in SOURCES)).hexdigest()[:12]
URL = f"js/{VERSION}"

# The best first; browsers take Brotli over HTTPS and from this machine.
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "br": functools.partial(brotli.compress, quality=9),
    "gzip": functools.partial(gzip.compress, mtime=0),
}

IN_ORDER = [f"learn/styles/{name}.css" for name in ("page", "pictures", "model", "steps", "teach")]
STYLES = {"look": bundle.STYLES, "learn": IN_ORDER, "train": ["train/train.css"], "use": ["use/use.css"]}
ADDRESS = "const address = (path) => new URL(path, import.meta.url);\n"
FIRST = """export const modules = {};
const load = (path) => import("./later.mjs").then(() => modules[path]);
"""
AFTER_FIRST = """import { modules } from "./look.mjs";
const load = async (path) => modules[path];
"""


def main_module(tab: str, dev: bool) -> str:
    """The address of a tab's main module, relative to the page."""
    return f"{URL}/{tab}/main.mjs" if dev else f"{URL}/{tab}.mjs"


@functools.cache
def scripts() -> dict[str, str]:
    """The page's scripts: what *Look* draws first; what it imports later, or the tabs share; and each other tab."""
    first = bundle.modules(["look/main.mjs"], later=False)
    tabs = {tab: bundle.modules([f"{tab}/main.mjs"], without=first) for tab in ("learn", "train", "use")}
    counts = Counter(path for paths in tabs.values() for path in paths)
    shared = [path for path, count in counts.items() if count > 1]
    later = bundle.modules([*bundle.imported_later(first), *shared], without=first)
    made = {"look.mjs": FIRST + ADDRESS + bundle.as_functions(first) + exports("look")}
    made["later.mjs"] = AFTER_FIRST + ADDRESS + bundle.as_functions(later)
    for tab, paths in tabs.items():
        own = bundle.as_functions([path for path in paths if path not in later])
        made[f"{tab}.mjs"] = 'import "./later.mjs";\n' + AFTER_FIRST + ADDRESS + own + exports(tab)
    return made


def exports(tab: str) -> str:
    path = f"{tab}/main.mjs"
    return f'export const {{ {", ".join(bundle.exports_of(path))} }} = modules["{path}"];\n'


@functools.cache
def content_of(name: str) -> bytes:
    """The file at ``URL/name``. Raises ``KeyError`` if there is none."""
    stem, _, suffix = name.rpartition(".")
    if name in FILES:
        return FILES[name].read_bytes()
    if suffix == "css" and stem in STYLES:
        return bundle.style(STYLES[stem]).encode()
    return scripts()[name].encode()


@functools.cache
def compressed(name: str, coding: str) -> bytes:
    """The file at ``URL/name``, in a quarter of its size."""
    return COMPRESS[coding](content_of(name))


def send(request: Request) -> Response:
    """A script, a style sheet, or one of ``FILES``. Addresses change with the content: browsers may keep the files."""
    name = request.path_params["name"]
    try:
        content = content_of(name)
    except KeyError:
        return Response("Not found", status_code=404, media_type="text/plain")
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    accepted = re.findall(r"\w+", request.headers.get("Accept-Encoding", ""))
    if coding := next((coding for coding in COMPRESS if coding in accepted), None):
        headers["Content-Encoding"] = coding
        content = compressed(name, coding)
    return Response(content, headers=headers, media_type=MEDIA_TYPES[Path(name).suffix])


def asset_route() -> Route:
    return Route(f"/{URL}/{{name:path}}", send)
