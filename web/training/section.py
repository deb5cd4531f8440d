"""Train: one ``gr.HTML`` with a constant template, whose modules are fetched when it is first shown.

Also where a visitor comes back to a training that goes on: the page stays with it, whichever tab is open.
"""

import gradio as gr

from ..assets import URL

TEMPLATE = '<div class="headscope ht-page"><p class="hs-quiet">Loading ...</p></div>'
START = f"""
const start = () => {{
  const {{ page, training }} = document.body.dataset;
  if (page !== "train" && training !== "true") return;
  for (const name of ["headscope-page", "headscope-training"]) window.removeEventListener(name, start);
  import(new URL({URL!r} + "/train/main.mjs", document.baseURI))
    .then((main) => main.mount(element.querySelector(".headscope")))
    .catch((error) => {{ element.querySelector(".hs-quiet").textContent = "This page could not start: " + error; }});
}};
for (const name of ["headscope-page", "headscope-training"]) window.addEventListener(name, start);
start();
"""


def train_section() -> None:
    gr.HTML(html_template=TEMPLATE, js_on_load=START, apply_default_css=False, padding=False, elem_id="hs-training")
