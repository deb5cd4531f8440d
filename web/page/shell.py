"""The page in the browser: one ``gr.HTML`` whose ES modules draw the bar and the workspace.

The template is constant, because Gradio runs what stands in a template as code: text from visitors and models reaches
the page through ``textContent`` and ``fillText`` only. The modules fetch everything from the routes in ``routes.py``
and ``web/runs/routes.py``; Gradio's own events carry a text only where the GPU is there only inside them (ZeroGPU).
"""

import json

import gradio as gr

from ..assets import FILES, FOLDER, URL
from .controls import CONTROLS

TEMPLATE = '<div class="headscope"><p class="hs-quiet">Loading the page ...</p></div>'
START = f"""
import(new URL({URL!r} + "/look/main.mjs", document.baseURI))
  .then((main) => main.mount(element.querySelector(".headscope"), {json.dumps(CONTROLS)}, GRADIO_WRITES
    && {{
    write: (fields) => trigger("write", fields),
    watch: (callback) => watch("value", () => callback(props.value)),
  }}, WITH_TRAINING))
  .catch((error) => {{ element.querySelector(".hs-quiet").textContent = "The page could not start: " + error; }});
"""
REL = {".css": "stylesheet", ".mjs": "modulepreload"}
LATER = ("learn", "train")  # loaded when they are opened; data is loaded when it is asked for
PRELOADED = [path for path in FILES if path.suffix in REL and path.relative_to(FOLDER).parts[0] not in LATER]
# Gradio adds the style sheets while its first frame is already on the screen; what would move then is set before.
FIRST_STYLE = """<style>
.gradio-container > .main.fillable { padding: 0 !important; }
.gradio-container > .main > .wrap.full { visibility: hidden; }
</style>"""
HEAD = FIRST_STYLE + "".join(
    f'<link rel="{REL[path.suffix]}" href="{URL}/{path.relative_to(FOLDER).as_posix()}">' for path in PRELOADED
)


def shell(*, with_training: bool, gradio_writes: bool) -> gr.HTML:
    """The page. ``with_training``: visitors may train GPTs of their own; ``gradio_writes``: an event carries texts."""
    start = START.replace("WITH_TRAINING", json.dumps(with_training))
    start = start.replace("GRADIO_WRITES", json.dumps(gradio_writes))
    return gr.HTML(html_template=TEMPLATE, js_on_load=start, apply_default_css=False, padding=False, elem_id="hs-view")
