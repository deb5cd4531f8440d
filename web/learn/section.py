"""Learn: the ladder, rung by rung, from a sentence to a head of the model that is served.

One ``gr.HTML`` with a constant template. Its modules are fetched when it is first shown, and draw what the routes in
``routes.py`` compute: text of visitors and models reaches the page through ``textContent`` only.
"""

import gradio as gr

from ..assets import URL

TEMPLATE = '<div class="headscope hl-page"><p class="hs-quiet">Loading the lessons ...</p></div>'
START = f"""
const start = () => {{
  if (document.body.dataset.page !== "learn") return;
  window.removeEventListener("headscope-page", start);
  import(new URL({URL!r} + "/learn/main.mjs", document.baseURI))
    .then((main) => main.mount(element.querySelector(".headscope")))
    .catch((error) => {{ element.querySelector(".hs-quiet").textContent = "The lessons could not start: " + error; }});
}};
window.addEventListener("headscope-page", start);
start();
"""


def learn_section() -> None:
    gr.HTML(html_template=TEMPLATE, js_on_load=START, apply_default_css=False, padding=False, elem_id="hs-lessons")
