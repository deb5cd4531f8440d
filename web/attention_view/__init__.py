"""The workspace in the browser: one ``gr.HTML`` whose ES modules draw what a pointer to a run leads to.

The component's value is small: which run, how many rows, in what state. Everything else the modules fetch from the
routes in ``web/rows.py``. The template is constant, because Gradio runs what stands in a template as code: text of
visitors and models reaches the page through ``textContent`` and ``fillText`` only.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import gradio as gr
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FOLDER = Path(__file__).parent
ASSETS = sorted([*FOLDER.glob("*.mjs"), *FOLDER.glob("*.css")])
# In the path, not in a query: modules that import each other by relative names inherit it.
VERSION = hashlib.sha256(b"".join(path.read_bytes() for path in ASSETS)).hexdigest()[:12]
URL = f"view/{VERSION}"

TEMPLATE = '<div class="headscope"><p class="hs-quiet">Loading the workspace ...</p></div>'
START = f"""
import(new URL({URL!r} + "/main.mjs", document.baseURI))
  .then((main) => main.mount(element.querySelector(".headscope"), props, watch, {{
    branch: (data) => trigger("branch", data),
    halt: (data) => trigger("halt", data),
  }}))
  .catch((error) => {{ element.querySelector(".hs-quiet").textContent = "The workspace could not start: " + error; }});
"""
REL = {".css": "stylesheet", ".mjs": "modulepreload"}
HEAD = "".join(f'<link rel="{REL[path.suffix]}" href="{URL}/{path.name}">' for path in ASSETS)


def attention_view(**options: Any) -> gr.HTML:
    """The component; its value is the dictionary that ``web.workspace.pointer`` makes."""
    return gr.HTML(html_template=TEMPLATE, js_on_load=START, apply_default_css=False, padding=False, **options)


class Assets(StaticFiles):
    """The modules and styles. Their path changes with their content, so a browser may keep them."""

    def __init__(self, folder: Path, assets: Iterable[Path]) -> None:
        super().__init__(directory=folder)
        self.paths = {asset.relative_to(folder).as_posix() for asset in assets}

    async def get_response(self, path: str, scope: Scope) -> Response:
        if path not in self.paths:
            return Response("Not found", status_code=404, media_type="text/plain")
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response


def asset_route() -> Mount:
    return Mount(f"/{URL}", Assets(FOLDER, ASSETS))
