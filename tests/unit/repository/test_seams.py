"""Parts of other libraries that these do not publish are used in seams only, where each is named with what it does.

A seam is a module with ``PARTS``. An update of a library may take such a part away without notice: then a test here
says which one is gone, and what Headscope used it for.
"""

import ast
import importlib
import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import gradio
import orjson
import pytest
from gradio.server_messages import ProcessCompletedMessage

from helpers.files import ROOT, nodes_of
from web.seams.gradio import event_ended, event_joined, with_start_replaced

SEAMS = {
    "model.seams.hub": "huggingface_hub",
    "model.seams.numba": "numba",
    "model.seams.torch": "torch",
    "web.seams.gradio": "gradio",
    "web.seams.uvicorn": "uvicorn",
}
OURS = {"app", "bench", "model", "web"}
# Methods of every named tuple, what notebooks call to draw an object, and os._exit.
PUBLISHED = {"_asdict", "_fields", "_replace", "_repr_html_", "_exit"}
HOOKS = {"sys.excepthook", "threading.excepthook"}  # which Python asks programs to replace
PARTS = [(seam, part) for seam in SEAMS for part in importlib.import_module(seam).PARTS]


def find(name: str) -> object:
    """What a dotted name stands for. Raises ``ImportError`` or ``AttributeError`` where its way ends."""
    path, *rest = name.split(".")
    found: object = importlib.import_module(path)
    for part in rest:
        path = f"{path}.{part}"
        if isinstance(found, ModuleType) and not hasattr(found, part):
            importlib.import_module(path)
        if isinstance(found, type) and is_set_in(found, part):
            return None
        found = getattr(found, part)
    return found


def is_set_in(kind: type, attribute: str) -> bool:
    """Whether a class declares an attribute of its objects, or a method of it gives them one."""
    if any(attribute in inspect.get_annotations(each) for each in kind.__mro__):
        return True
    methods = [member for each in kind.__mro__ for member in vars(each).values() if inspect.isfunction(member)]
    return any(re.search(rf"self\.{attribute}(?::[^=\n]+)? =", inspect.getsource(each)) for each in methods)


@pytest.mark.parametrize(("seam", "part"), PARTS, ids=lambda value: value)
def test_every_part_is_still_there(seam: str, part: str) -> None:
    try:
        find(part)
    except (ImportError, AttributeError) as error:
        library, purpose = SEAMS[seam], importlib.import_module(seam).PARTS[part]
        pytest.fail(f"{library} {version(library)} lacks {part} ({error}), which {purpose}: change {seam}")


def test_gradio_still_says_what_its_seam_reads() -> None:
    page = Path(gradio.__file__).parent / "templates" / "frontend" / "index.html"
    html, styles = with_start_replaced(page.read_bytes(), b"LATER")
    assert b"LATER" in html and styles, "the page starts with another script, or has no style sheet"
    message = ProcessCompletedMessage(event_id="a1", output={}, success=True)
    body = b"data: " + orjson.dumps(message.model_dump(), default=str) + b"\n\n"
    assert event_ended(body) == "a1" and event_joined(b'{"event_id": "a1"}') == "a1", "messages of the queue differ"


def sources() -> list[Path]:
    return [ROOT / "app.py", *(path for top in sorted(OURS - {"app"}) for path in sorted((ROOT / top).rglob("*.py")))]


def source_of(seam: str) -> Path:
    return ROOT / f"{seam.replace('.', '/')}.py"


def is_private(name: str) -> bool:
    return bool(re.fullmatch(r"_[A-Za-z]\w*", name)) and name not in PUBLISHED


def defined(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The names that a file gives to functions, classes, fields and attributes of its own objects."""
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                yield name


def imported(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """What each imported name of a file stands for, except what is ours."""
    found = {}
    for node in nodes:
        match node:
            case ast.Import(names=names):
                found |= {(each.asname or each.name.partition(".")[0]): each.name for each in names}
            case ast.ImportFrom(module=str(module), level=0, names=names):
                found |= {(each.asname or each.name): f"{module}.{each.name}" for each in names}
    return {name: full for name, full in found.items() if full.partition(".")[0] not in OURS}


def overridden(nodes: Iterable[ast.AST], libraries: dict[str, str]) -> dict[str, int]:
    """The private names of other packages' classes that classes derived from these define, and where."""
    found = {}
    for node in nodes:
        for base in node.bases if isinstance(node, ast.ClassDef) else ():
            first, dot, rest = ast.unparse(base).partition(".")
            if first in libraries:
                kind = find(f"{libraries[first]}{dot}{rest}")
                found |= {
                    name: node.lineno for name in defined(ast.walk(node)) if is_private(name) and hasattr(kind, name)
                }
    return found


def foreign_parts(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Where a file uses private names of other packages, replaces parts of them, or knows their classes by name."""
    libraries = imported(nodes)
    theirs = overridden(nodes, libraries)
    own = set(defined(nodes)) - theirs.keys()
    yield from ((line, name) for name, line in theirs.items())
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=name) if is_private(name):
                yield node.lineno, ast.unparse(node)
            case ast.Attribute(attr=name) if is_private(name) and name not in own:
                yield node.lineno, ast.unparse(node)
            case ast.Import(names=names) if any(map(is_private, ".".join(each.name for each in names).split("."))):
                yield node.lineno, ast.unparse(node)
            case ast.ImportFrom(module=module, names=names):
                parts = [*(module or "").split("."), *(each.name for each in names)]
                if any(map(is_private, parts)):
                    yield node.lineno, ast.unparse(node)
            case ast.Call(func=ast.Name(id="getattr" | "setattr" | "hasattr"), args=[_, ast.Constant(value=name), *_]):
                if is_private(str(name)):
                    yield node.lineno, ast.unparse(node)
            case ast.Attribute(ctx=ast.Store() | ast.Del()):
                root = node.value
                while isinstance(root, ast.Attribute):
                    root = root.value
                text = ast.unparse(node)
                if isinstance(root, ast.Name) and root.id in libraries and text not in HOOKS:
                    yield node.lineno, text
            case ast.Compare(left=left, comparators=[right]):
                for side in (left, right):
                    if isinstance(side, ast.Attribute) and side.attr in ("__name__", "__qualname__", "__module__"):
                        yield node.lineno, ast.unparse(node)


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ntorch._int_mm(a, b)",
        "def f(demo):\n    return demo._queue",
        "from numba.core.caching import _Cache",
        "import torch._inductor.config",
        "getattr(event, '_data')",
        "import gradio.http_server\ngradio.http_server.uvicorn = None",
        "from numba import config\nconfig.CACHE_DIR = 'here'",
        "any(kind.__name__ == 'TransportError' for kind in kinds)",
        "class Own(Other):\n    def _save(self):\n        super()._save()",
        "from torch import nn\nclass Own(nn.Module):\n    def _save_to_state_dict(self):\n        pass",
    ],
)
def test_foreign_parts_are_recognised(source: str) -> None:
    assert list(foreign_parts(list(ast.walk(ast.parse(source)))))


def test_foreign_parts_are_used_in_seams_only() -> None:
    others = [path for path in sources() if path not in map(source_of, SEAMS)]
    found = [(f"{path}:{line}", text) for path in others for line, text in foreign_parts(nodes_of(path))]
    assert not found, "move these to a seam, whose PARTS name them"


@pytest.mark.parametrize("seam", SEAMS)
def test_a_seam_names_all_that_it_uses(seam: str) -> None:
    nodes = nodes_of(source_of(seam))
    used = {node.attr for node in nodes if isinstance(node, ast.Attribute)} | set(defined(nodes))
    named = {name for part in importlib.import_module(seam).PARTS for name in part.split(".")}
    assert not {name for name in used if is_private(name)} - named, f"PARTS of {seam} must name these"


def test_tests_leave_the_private_parts_to_the_seams() -> None:
    private = {name for _, part in PARTS for name in part.split(".") if is_private(name)}
    tests = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    assert "_queue" in private
    for path in tests:
        used = set(re.findall(r"\.(_\w+)", path.read_text(encoding="utf-8")))
        assert not used & private, f"{path} uses what a seam names"
