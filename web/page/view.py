"""The workspace in the browser: one ``gr.HTML`` whose ES modules draw what a pointer to a run leads to.

The component's value is small: which run, how many rows, in what state. The modules fetch everything else from the
routes in ``web/runs/routes.py``. The template is constant, because Gradio runs what stands in a template as code: text
from visitors and models reaches the page through ``textContent`` and ``fillText`` only.
"""

import json
from typing import Any

import gradio as gr

from ..assets import FILES, FOLDER, URL
from .controls import CONTROLS

TEMPLATE = '<div class="headscope"><p class="hs-quiet">Loading the workspace ...</p></div>'
START = f"""
import(new URL({URL!r} + "/look/main.mjs", document.baseURI))
  .then((main) => main.mount(element.querySelector(".headscope"), props, watch, {{
    branch: (data) => trigger("branch", data),
    halt: (data) => trigger("halt", data),
  }}, {json.dumps(CONTROLS)}))
  .catch((error) => {{ element.querySelector(".hs-quiet").textContent = "The workspace could not start: " + error; }});
"""
REL = {".css": "stylesheet", ".mjs": "modulepreload"}
PRELOADED = [path for path in FILES if path.relative_to(FOLDER).parts[0] != "learn"]  # Learn loads when it is opened
HEAD = "".join(
    f'<link rel="{REL[path.suffix]}" href="{URL}/{path.relative_to(FOLDER).as_posix()}">' for path in PRELOADED
)


def workspace_view(**options: Any) -> gr.HTML:
    """The component; its value is the dictionary that ``pointer`` makes."""
    return gr.HTML(html_template=TEMPLATE, js_on_load=START, apply_default_css=False, padding=False, **options)
