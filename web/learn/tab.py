"""The Learn tab: the ladder, rung by rung, from a sentence to a head of a served model.

It is one ``gr.HTML`` with a constant template. Its JavaScript modules are fetched when the tab is first opened and draw
what the routes in ``routes.py`` compute. Text from visitors and models reaches the page through ``textContent`` only.
"""

import gradio as gr

from ..assets import URL

TAB = "hs-learn"

TEMPLATE = '<div class="headscope hl-page"><p class="hs-quiet">Loading the lessons ...</p></div>'
START = f"""
import(new URL({URL!r} + "/learn/main.mjs", document.baseURI))
  .then((main) => main.mount(element.querySelector(".headscope")))
  .catch((error) => {{ element.querySelector(".hs-quiet").textContent = "Could not load the lessons: " + error; }});
"""

# A link to a rung opens the tab, whose modules then read the rest of the link.
OPEN = f"""() => {{
  const open = () => location.hash.startsWith("#learn") && document.getElementById("{TAB}-button")?.click();
  window.addEventListener("hashchange", open);
  open();
}}"""

# The lessons use the model chosen at the top of the page, which may happen before they are opened.
TELL_MODEL = """(model) => {
  window.headscopeModel = model;
  window.dispatchEvent(new CustomEvent("headscope-model"));
}"""


def learn_tab(demo: gr.Blocks, model: gr.Dropdown) -> None:
    """Build the content of the tab inside ``demo``."""
    gr.HTML(html_template=TEMPLATE, js_on_load=START, apply_default_css=False, padding=False, elem_id="hs-lessons")
    demo.load(None, None, None, js=OPEN, api_visibility="private")
    gr.on(None, None, [model], None, js=TELL_MODEL, queue=False, show_progress="hidden", api_visibility="private")
