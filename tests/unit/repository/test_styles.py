"""Style sheets that do not fight: what makes a rule strong, and the widths at which the page changes."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from helpers.files import ROOT
from model.drawing import bundle

SHEETS = sorted((ROOT / "web" / "js").rglob("*.css"))
CLASS = r"h[sltu]-[a-z0-9]+(?:-[a-z0-9]+)*"
BREAKPOINTS = {640, 960, 1100, 1280}  # pixels of the window, or of the workspace


def blocks(text: str) -> Iterator[tuple[list[str], str]]:
    """Each declaration or empty rest of a sheet, after the selectors and conditions around it."""
    around: list[str] = []
    start = 0
    text = re.sub(r"/\*[\s\S]*?\*/", "", text)
    for found in re.finditer(r"[{};]", text):
        part, start = text[start : found.start()].strip(), found.end()
        if found[0] == "{":
            around.append(part)
        else:
            yield list(around), part
            if found[0] == "}":
                around.pop()


def parts(path: Path) -> list[tuple[list[str], str]]:
    return list(blocks(path.read_text(encoding="utf-8")))


def ids(path: Path) -> str:
    return path.relative_to(ROOT / "web" / "js").as_posix()


@pytest.mark.parametrize("path", SHEETS, ids=ids)
def test_nothing_is_important_except_on_paper_and_without_motion(path: Path) -> None:
    exempt = ("@media print", "@media (prefers-reduced-motion: reduce)")
    important = [(around, part) for around, part in parts(path) if "!important" in part]
    assert not [each for each in important if not set(exempt) & set(each[0])]


@pytest.mark.parametrize("path", SHEETS, ids=ids)
def test_the_bundle_alone_names_the_roots(path: Path) -> None:
    roots = {bundle.root_of(each.relative_to(bundle.FOLDER).as_posix()) for each in SHEETS} - {"body"}
    named = re.compile("|".join(rf"{re.escape(root)}(?![\w-])" for root in roots))
    assert not [around for around, _ in parts(path) if named.search(" ".join(around))]


@pytest.mark.parametrize("path", SHEETS, ids=ids)
def test_the_page_changes_at_four_widths(path: Path) -> None:
    conditions = {each for around, _ in parts(path) for each in around if re.match("@(media|container)", each)}
    widths = {
        width
        for each in conditions
        if re.search(r"\b(?:width|inline-size)\b", each)
        for width in re.findall(r"\d+px", each)
    }
    assert widths <= {f"{width}px" for width in BREAKPOINTS}
    assert not [each for each in conditions if "max-width" in each or "min-width" in each]


@pytest.mark.parametrize("path", [path for path in SHEETS if path != bundle.FOLDER / bundle.PAGE], ids=ids)
def test_colours_have_names(path: Path) -> None:
    """Light and dark pages differ in ``page.css`` alone."""
    colour = re.compile(r"#[0-9a-f]{3,8}\b|\b(?:rgb|hsl)a?\(", re.IGNORECASE)
    assert not [part for _, part in parts(path) if colour.search(part)]


@pytest.mark.parametrize("path", SHEETS, ids=ids)
def test_what_covers_what_has_names(path: Path) -> None:
    heights = [part for _, part in parts(path) if part.startswith("z-index:")]
    assert not [part for part in heights if not re.fullmatch(r"z-index: var\(--hs-z-[a-z]+\)", part)]


def without_comments(path: Path) -> str:
    comment = r"/\*[\s\S]*?\*/" if path.suffix == ".css" else r"^\s*(?://|/?\*).*$"
    return re.sub(comment, "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)


@cache
def scripts() -> dict[Path, str]:
    """What sets classes and ids, or asks for them: the page's modules and templates."""
    folders = [(ROOT / "web", "*.mjs"), (ROOT / "web", "*.py"), (ROOT / "model" / "drawing", "*.py")]
    return {path: without_comments(path) for folder, pattern in folders for path in folder.rglob(pattern)}


@cache
def named() -> Counter[str]:
    """How often scripts, and what reads the page from outside, name each class or id."""
    outside = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "tests").rglob("*.mjs"), *(ROOT / "bench").rglob("*.py")]
    texts = [*scripts().values(), *(path.read_text(encoding="utf-8") for path in outside)]
    return Counter(name for text in texts for name in re.findall(rf"(?<![\w-]){CLASS}(?![\w-])", text))


@cache
def styled() -> set[str]:
    """The classes and ids that style sheets name."""
    return {name for path in SHEETS for name in re.findall(rf"[.#]({CLASS})", without_comments(path))}


def test_every_variable_is_read() -> None:
    """Gradio reads those of its own frame."""
    own = {
        part.partition(":")[0]
        for path in SHEETS
        for around, part in parts(path)
        if part.startswith("--") and not any(".gradio-container" in each for each in around)
    }
    sheets = "".join(without_comments(path) for path in SHEETS)
    read = set(re.findall(r"var\(\s*(--[\w-]+)", sheets + "".join(scripts().values())))
    asked_for = {name for text in scripts().values() for name in re.findall(r"[\"'](--[\w-]+)", text)}
    assert not own - read - asked_for


def test_every_styled_class_is_set_somewhere() -> None:
    made = {start for text in scripts().values() for start in re.findall(r"(h[sltu]-[a-z0-9-]+-)\$\{", text)}
    known = {name for text in scripts().values() for name in re.findall(CLASS, text)}
    dead = {name for name in styled() - known if not name.startswith(tuple(made))}
    assert not dead


def test_every_class_that_is_set_is_styled_or_asked_for() -> None:
    lone = {name for name, count in named().items() if count == 1} - styled()
    set_here = re.compile(r"(?:class: |className = |classList\.\w+\()[\"`]([^\"`]*)[\"`]")
    dead = {
        name
        for path, text in scripts().items()
        if path.suffix == ".mjs"
        for names in set_here.findall(text)
        for name in names.split()
        if name in lone
    }
    assert not dead
