"""Learn, Train and Use: one ``gr.HTML`` each with a constant template; its modules are imported when it first opens.

The modules draw what the routes compute: text of visitors and models reaches the page through ``textContent`` only.
"""

import json

import gradio as gr

from ..assets import main_module

TEMPLATE = '<div class="headscope {css}"{data}><p class="hs-quiet">Loading ...</p></div>'
START = """
const events = EVENTS;
const start = () => {
  const { page, training } = document.body.dataset;
  if (!(CONDITION)) return;
  for (const name of events) window.removeEventListener(name, start);
  import(new URL("MODULE", document.baseURI))
    .then((main) => main.mount(element.querySelector(".headscope")))
    .catch((error) => {
      const words = `This tab could not start: ${error}. If the server has a new version, reload the page. `;
      const reload = document.createElement("button");
      Object.assign(reload, { textContent: "Reload", className: "hs-button", onclick: () => location.reload() });
      element.querySelector(".hs-quiet").replaceChildren(words, reload);
    });
};
for (const name of events) window.addEventListener(name, start);
start();
"""


def learn_tab(dev: bool) -> None:
    lazy_tab("learn", dev, "hl-page", "hs-lessons", ["headscope-page"], 'page === "learn"')


def train_tab(dev: bool) -> None:
    """The Train tab. It also starts if a visitor with a running training returns, regardless of the open tab."""
    events = ["headscope-page", "headscope-training"]
    lazy_tab("train", dev, "ht-page", "hs-training", events, 'page === "train" || training === "true"')


def use_tab(dev: bool, *, with_key: bool, with_tools: bool, with_training: bool) -> None:
    """The Use tab, whose examples name a key if the server requires one, and say whether it answers MCP clients."""
    has = {"key": with_key, "tools": with_tools, "training": with_training}
    data = "".join(f' data-{name}="{json.dumps(value)}"' for name, value in has.items())
    lazy_tab("use", dev, "hu-page", "hs-use", ["headscope-page"], 'page === "use"', data)


def lazy_tab(tab: str, dev: bool, css: str, elem_id: str, events: list[str], condition: str, data: str = "") -> None:
    """A tab whose main module is imported once ``condition`` holds; it is checked now and at each of ``events``."""
    start = START.replace("EVENTS", repr(events)).replace("CONDITION", condition)
    start = start.replace("MODULE", main_module(tab, dev))
    gr.HTML(
        html_template=TEMPLATE.format(css=css, data=data),
        js_on_load=start,
        apply_default_css=False,
        padding=False,
        elem_id=elem_id,
    )
