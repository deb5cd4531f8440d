"""The Learn tab: the ladder, rung by rung, from a sentence to a head of the model that is served.

One ``gr.HTML`` with a constant template. Its modules are fetched when the tab is first opened, and draw what the routes
in ``routes.py`` compute: text of visitors and models reaches the page through ``textContent`` only.
"""

import gradio as gr

from ..assets import URL

TAB = "hs-learn"

TEMPLATE = '<div class="headscope hl-page"><p class="hs-quiet">Loading the lessons ...</p></div>'
START = f"""
import(new URL({URL!r} + "/learn/main.mjs", document.baseURI))
  .then((main) => main.mount(element.querySelector(".headscope")))
  .catch((error) => {{ element.querySelector(".hs-quiet").textContent = "The lessons could not start: " + error; }});
"""

# A link to a rung opens the tab, whose modules then read the rest of it.
OPEN = f"""() => {{
  const open = () => location.hash.startsWith("#learn") && document.getElementById("{TAB}-button")?.click();
  window.addEventListener("hashchange", open);
  open();
}}"""

# The lessons are about the model that is chosen at the top; they may be opened later than it is.
TELL_MODEL = """(model) => {
  window.headscopeModel = model;
  window.dispatchEvent(new CustomEvent("headscope-model"));
}"""


def learn_tab(demo: gr.Blocks, model: gr.Dropdown) -> None:
    """Build the tab's content inside the Blocks."""
    gr.HTML(html_template=TEMPLATE, js_on_load=START, apply_default_css=False, padding=False, elem_id="hs-lessons")
    demo.load(None, None, None, js=OPEN, api_visibility="private")
    gr.on(None, None, [model], None, js=TELL_MODEL, queue=False, show_progress="hidden", api_visibility="private")
