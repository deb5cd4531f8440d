"""The modules of the page, joined to scripts: the forms that they may have, and what each script contains."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.files import ROOT
from model.drawing import bundle
from web import assets


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(bundle, "FOLDER", tmp_path)
    bundle.source.cache_clear()
    yield tmp_path
    bundle.source.cache_clear()


def run(script: str) -> object:
    """What a script logs as JSON."""
    done = subprocess.run(["node", "--input-type=module"], input=script, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_every_form_of_import_and_export(folder: Path) -> None:
    files = {
        "main.mjs": """
// Comments may say import("x") and export default.
import { one, two as second } from "./lib/names.mjs";
import {
  Kept,
} from "./lib/kept.mjs";
/** @type {import("./types.mjs").X} */
export const answer = /** @type {import("./types.mjs").X} */ ([one, second(), new Kept().name]);
export const later = async () => (await import("./later.mjs")).value;
export const file = new URL("a.json", import.meta.url);
""",
        "lib/names.mjs": "let n=0;const a=1,b=()=>a+1;export{a as one,b as two,n};\n//# sourceMappingURL=names.map\n",
        "lib/kept.mjs": "export class Kept {\n  name = import.meta ? 1 : 0;\n}\n".replace(
            "import.meta ? 1 : 0", '"kept"'
        ),
        "later.mjs": """
import { one } from "./lib/names.mjs";
export async function* none() {}
export const value = one + 6;
""",
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    assert bundle.modules(["main.mjs"], later=False)[-1] == "main.mjs"
    paths = bundle.modules(["main.mjs"])
    assert sorted(paths) == sorted(files)
    script = "const modules = {}, load = async (path) => modules[path], address = (path) => path;\n"
    script += bundle.as_functions(paths)
    script += 'const { answer, later, file } = modules["main.mjs"];\n'
    script += "console.log(JSON.stringify([answer, await later(), file]));"
    assert run(script) == [[1, 2, "kept"], 7, "a.json"]


@pytest.mark.parametrize(
    "code",
    [
        "export default 1;",
        'import * as all from "./a.mjs";',
        'import "./a.mjs";',
        'export { a } from "./a.mjs";',
        "const address = import.meta.url;",
        "const one = await import(name);",
    ],
)
def test_a_form_that_it_does_not_know_is_refused(folder: Path, code: str) -> None:
    (folder / "odd.mjs").write_text(f"const a = 1;\n{code}\nconst b = 2;\n")
    found = re.search("(?:import|export).*", code)
    assert found
    with pytest.raises(ValueError, match=re.escape(f"odd.mjs: the bundle knows no {found.group()!r}")):
        bundle.as_functions(["odd.mjs"])


def test_html_files_have_the_modules_that_they_need() -> None:
    modules = bundle.modules([bundle.ENTRY])
    assert {"look/panels/grid.mjs", "lib/drawing/matrix.mjs"} <= set(modules)
    assert not [path for path in modules if path.startswith(("learn/", "train/"))]
    assert not re.search(r"^(?:import|export)\b|import\.meta", bundle.script(), re.MULTILINE)


def test_every_module_of_the_page_is_in_one_script() -> None:
    entries = [f"{tab}/main.mjs" for tab in ("look", "learn", "train", "use")]
    found = [path for script in assets.scripts().values() for path in re.findall(r'^modules\["(.*)"\] =', script, re.M)]
    assert sorted(found) == sorted(bundle.modules(entries))
    used = {*found, *bundle.modules([bundle.ENTRY])}
    assert {path for path in assets.FILES if path.endswith(".mjs")} == used


def test_every_style_sheet_is_in_one_sheet() -> None:
    sheets = "".join(bundle.style(patterns) for patterns in assets.STYLES.values())
    alone = [bundle.style([name]) for name in assets.FILES if name.endswith(".css")]
    assert sum(map(len, alone)) == len(sheets) and all(sheet in sheets for sheet in alone)


def test_rules_hold_within_their_root_and_outweigh_gradios_and_those_of_lower_layers(folder: Path) -> None:
    turn = "@keyframes turn {\n  to {\n    rotate: 1turn;\n  }\n}\n"
    sheets = {
        "learn/a.css": f".a {{}}\n{turn}/* b */\n.b {{}}\n",
        bundle.PAGE: "& {}\n",
        "look/c.css": "& {}\n",
        "look/styles/stage/d.css": "& {}\n",
        "widgets/styles/shown.css": "& {}\n",
    }
    for name, content in sheets.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    assert bundle.style(list(sheets)) == (
        f"{turn}:is(#hs, .hl-page):not(#hs) {{\n.a {{}}\n\n.b {{}}\n}}\n"
        ":is(#hs, body) {\n& {}\n}\n"
        ":is(#hs, .headscope):not(#hs) {\n& {}\n}\n"
        ":is(#hs, .headscope):not(#hs):not(#hs) {\n& {}\n}\n"
        ":is(#hs, .headscope):not(#hs):not(#hs):not(#hs) {\n& {}\n}\n"
    )


@pytest.mark.parametrize("name", ["look.mjs", "later.mjs", "learn.mjs", "train.mjs"])
def test_the_scripts_are_modules(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(assets.scripts()[name], encoding="utf-8")
    subprocess.run(["node", "--check", tmp_path / name], check=True, cwd=ROOT)
