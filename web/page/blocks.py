"""The page: one Blocks with the workspace, the lessons and the examples, one of which is visible at a time.

The workspace is one ``gr.HTML`` whose ES modules draw everything. Its template is constant, because Gradio executes
templates as code; text from visitors and models reaches the page through ``textContent`` and ``fillText`` only. The
modules fetch everything from the routes in ``routes.py`` and ``web/runs/routes.py``. Only on servers whose GPU is
available inside Gradio events alone (ZeroGPU) does an event carry a text.
"""

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any

import gradio as gr

from model import InputError
from model.errors import Busy, Closed

from ..assets import main_module
from ..client import client_of
from ..seams.gradio import check_queue_every, fields_of
from ..services import Services
from ..serving.chat_templates import TemplatesUnavailable
from ..settings import MAX_RUN_ID
from .controls import CONTROLS
from .page_text import read_page_text
from .tabs import learn_tab, train_tab, use_tab
from .writer import TOO_MANY, PageWriter

MAX_QUEUED = 1_000  # events in Gradio's queue; all of them run at once, since the engines limit what is written
QUEUE_SECONDS = 0.01  # between checks of Gradio's queue, which by default is checked a thousand times a second
MAX_SESSIONS = 500  # browser tabs whose state Gradio keeps

TEMPLATE = '<div class="headscope"><p class="hs-quiet">Loading the page ...</p></div>'
START = f"""
import(new URL(MODULE, document.baseURI))
  .then((main) => main.mount(element.querySelector(".headscope"), {json.dumps(CONTROLS)}, GRADIO_WRITES
    && {{
    write: (fields) => trigger("write", fields),
    watch: (callback) => watch("value", () => callback(props.value)),
  }}, WITH_TRAINING))
  .catch((error) => {{ element.querySelector(".hs-quiet").textContent = "The page could not start: " + error; }});
"""


def shell(*, with_training: bool, gradio_writes: bool, dev: bool) -> gr.HTML:
    """The page. ``with_training``: visitors may train GPTs; ``gradio_writes``: a Gradio event carries texts."""
    start = START.replace("MODULE", json.dumps(main_module("look", dev)))
    start = start.replace("WITH_TRAINING", json.dumps(with_training))
    start = start.replace("GRADIO_WRITES", json.dumps(gradio_writes))
    return gr.HTML(html_template=TEMPLATE, js_on_load=start, apply_default_css=False, padding=False, elem_id="hs-view")


# Gradio serves these faces: nothing on the page needs another host. first_screen.py declares their two weights.
THEME = gr.themes.Default(
    primary_hue="blue",
    neutral_hue="slate",
    font=[gr.themes.Font("IBM Plex Sans"), gr.themes.Font("sans-serif")],
    font_mono=[gr.themes.Font("IBM Plex Mono"), gr.themes.Font("monospace")],
    spacing_size="sm",
    radius_size="sm",
).set(  # Gradio's own greys and blues are too pale on white; these have a contrast of at least 4.5
    body_text_color_subdued="*neutral_500",
    color_accent="*primary_600",
    button_primary_background_fill="*primary_600",
    button_primary_background_fill_hover="*primary_700",
)
LAUNCH: dict[str, Any] = {
    "theme": THEME,
    "prevent_thread_lock": True,
    "mcp_server": False,  # web/api/mcp.py answers at that address
    "ssr_mode": False,  # Gradio's Node proxy would swallow our routes
    "run_history": False,
    "enable_monitoring": False,
    "state_session_capacity": MAX_SESSIONS,
    "max_threads": MAX_QUEUED,  # concurrent events: all that are queued, so that none waits before the engines
    "max_file_size": "64kb",
    "footer_links": [],
}


def build(
    services: Services,
    writer: PageWriter,
    endpoints: Sequence[Callable[..., Any]],
    *,
    with_key: bool = False,
    with_tools: bool = False,
) -> gr.Blocks:
    """Build the page, with the endpoints that programs call. The models need not be loaded yet."""
    settings = services.served.settings
    with_training, zero_gpu, dev = settings.train, settings.zero_gpu, settings.dev
    with gr.Blocks(title="Headscope", analytics_enabled=False, fill_width=True) as demo:
        view = shell(with_training=with_training, gradio_writes=zero_gpu, dev=dev)
        with gr.Column(elem_id="hs-learn"):
            learn_tab(dev)
        if with_training:
            with gr.Column(elem_id="hs-train"):
                train_tab(dev)
        with gr.Column(elem_id="hs-use-page"):
            use_tab(dev, with_key=with_key, with_tools=with_tools, with_training=with_training)
        if zero_gpu:
            write_by_event(services, writer, view)
        for endpoint in endpoints:
            gr.api(endpoint, api_name=endpoint.__name__)  # type: ignore[attr-defined]
    # No limit here, since the engines already bound what runs at the same time.
    queued: gr.Blocks = demo.queue(default_concurrency_limit=None, max_size=MAX_QUEUED, api_open=False)
    check_queue_every(QUEUE_SECONDS, queued)
    return queued


def write_by_event(services: Services, writer: PageWriter, view: gr.HTML) -> None:
    """Let a Gradio event write the page's texts, for servers whose GPU is available inside events only.

    The page tells its texts apart by ``asked``, which is part of every pointer.
    """

    async def write(request: gr.Request, event: gr.EventData) -> AsyncGenerator[dict[str, Any]]:
        fields = fields_of(event)
        asked = {"asked": str(fields.get("asked"))[:MAX_RUN_ID]}
        try:
            text = await read_page_text(services, client_of(request), fields)
        except (InputError, Closed, TemplatesUnavailable) as error:
            yield asked | {"refused": str(error)}
            return
        except Busy:
            yield asked | {"refused": TOO_MANY}
            return
        async with aclosing(writer.write(text, client_of(request), in_event=True)) as pointers:
            async for pointer in pointers:
                yield pointer | asked

    view.write(write, None, view, trigger_mode="multiple", show_progress="hidden", api_visibility="private")
