"""The page: one Blocks with its header and its tabs."""

from typing import Any

import gradio as gr

from model import LoadedModel
from model.errors import counted

from ..api.gradio_endpoints import add_endpoints
from ..learn.tab import TAB as LEARN
from ..learn.tab import learn_tab
from ..services import Services
from ..settings import MAX_QUEUED, MAX_SESSIONS
from .controls import FIELDS
from .link import land
from .use import use_tab
from .view import HEAD
from .write_and_look import workspace_tab

BRAND = """<div class="hs-brand"><h1>Headscope</h1>
<p>A GPT writes, and you see what each of its attention heads looks at.</p></div>"""

# Whoever typed while the page was opened keeps that; in the browser, where nobody types meanwhile.
FILL_PROMPT = "(typed, shown) => typed || shown?.prompt || ''"

# Fonts that every system has: nothing on the page needs another host.
THEME = gr.themes.Default(
    primary_hue="blue",
    neutral_hue="slate",
    font=["system-ui", "-apple-system", "Segoe UI", "sans-serif"],
    font_mono=["ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace"],
    spacing_size="sm",
    radius_size="sm",
).set(  # Gradio's own greys and blues are too pale to be read on white: these have a contrast of 4.5 and more
    body_text_color_subdued="*neutral_500",
    color_accent="*primary_600",
    button_primary_background_fill="*primary_600",
    button_primary_background_fill_hover="*primary_700",
)
LAUNCH: dict[str, Any] = {
    "theme": THEME,
    "head": HEAD,
    "ssr_mode": False,  # Gradio's Node proxy would swallow our routes
    "run_history": False,
    "enable_monitoring": False,
    "state_session_capacity": MAX_SESSIONS,
    "max_file_size": "64kb",
    "footer_links": ["api", "settings"],
}


def build(services: Services, *, with_key: bool = False) -> gr.Blocks:
    """The page, whether the models are there yet or not."""
    served = services.served
    names = list(served.sources)
    with gr.Blocks(title="Headscope", analytics_enabled=False, fill_width=True) as demo:
        with gr.Row(elem_id="hs-header", equal_height=True):
            gr.HTML(BRAND, apply_default_css=False, padding=False, elem_classes="hs-brand-box")
            model = gr.Dropdown(
                names,
                value=names[0] if names else None,
                label="Model",
                elem_id="hs-model",
                show_label=False,
                container=False,
                filterable=False,
                interactive=True,
                scale=0,
                min_width=220,
            )
            facts = gr.Markdown("", elem_id="hs-facts")
        with gr.Tabs(elem_id="hs-tabs"):
            with gr.Tab("Write & Look"):
                *controls, view = workspace_tab(services, model)
            with gr.Tab("Learn", elem_id=LEARN):
                learn_tab(demo, model)
            with gr.Tab("Use"):
                use_tab(services, demo, with_key)

        def say_loading() -> object:
            return gr.skip() if served.ready.done() else {"state": "loading", "notices": []}

        # Not a generator: Gradio repeats a generator's last values at its end, over what was typed in between.
        async def open_page(request: gr.Request) -> list[object]:
            await served.wait()
            landing = await land(services, request.query_params)
            values = [landing.settings.get(field, gr.skip()) for field in FIELDS]
            values[FIELDS.index("model")] = gr.update(
                choices=list(served.models), value=landing.loaded.name if landing.loaded else None
            )
            values[FIELDS.index("prompt")] = gr.skip()
            shown = landing.pointer | {"prompt": landing.settings.get("prompt")}
            return [*values, describe(landing.loaded), shown]

        quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
        demo.load(say_loading, None, view, queue=False, **quiet)
        opened = demo.load(open_page, None, [*controls, facts, view], **quiet)
        opened.then(None, [controls[0], view], controls[0], js=FILL_PROMPT, queue=False, **quiet)
        model.change(lambda name: describe(served.models.get(name)), model, facts, queue=False, **quiet)
        add_endpoints(services)
    # No limit here: the engines bound what runs at the same time, and one limit is enough.
    queued: gr.Blocks = demo.queue(default_concurrency_limit=None, max_size=MAX_QUEUED, api_open=False)
    return queued


def describe(loaded: LoadedModel | None) -> str:
    """A model in one line."""
    if loaded is None:
        return ""
    config = loaded.config
    precision = str(loaded.dtype).removeprefix("torch.")
    return (
        f"**{count(config.n_parameters)}** weights · **{counted(config.n_layer, 'layer')}** × "
        f"**{counted(config.n_head, 'head')}** · "
        f"context {config.context_length:,} · {precision} on {loaded.device.type.replace('cpu', 'CPU')}"
    )


def count(n: int) -> str:
    return f"{n / 1e6:.1f} M" if n >= 1e5 else f"{n:,}"
