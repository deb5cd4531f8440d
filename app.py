"""Headscope: a GPT on a web page, with every attention head in view. Run ``python app.py --help``."""

import os
import signal
import sys
import threading

import gradio as gr
from starlette.middleware import Middleware

from model.checkpoint import choose_device
from web import mcp, settings
from web.api import api_routes
from web.attention_view import asset_route
from web.engines import Engines
from web.errors import LimitBody
from web.gauges import Gauges
from web.keys import RequireKey, SameSite
from web.learn import lesson_route
from web.learn.routes import learn_routes
from web.metrics import Metrics
from web.openings import Openings
from web.page import LAUNCH, build
from web.rows import row_routes
from web.runs import Runs
from web.settings import Settings
from web.shelf import Shelf
from web.traces import Traces
from web.workspace import Parts

CLOSING_SECONDS = 3.0


def start(chosen: Settings) -> tuple[gr.Blocks, Parts]:
    """Open the port; everything but the models is there when this returns."""
    shelf, runs, metrics = Shelf(chosen), Runs(), Metrics()
    engines = Engines(chosen.limits, metrics)
    metrics.registry.register(Gauges(engines, runs))
    parts = Parts(shelf, runs, Openings(shelf, runs), engines, Traces(chosen.limits))
    demo = build(parts, with_key=chosen.api_key is not None)
    routes = [*api_routes(parts), *row_routes(shelf, runs).routes, *learn_routes(parts).routes]
    routes += [asset_route(), lesson_route()]
    launched = threading.Event()
    # A Space is shown inside another site's frame.
    same_site: SameSite = "none" if os.environ.get("SPACE_ID") else "lax"
    key_check = Middleware(RequireKey, key=chosen.api_key or "", launched=launched, same_site=same_site)
    demo.launch(
        server_name=chosen.host,
        server_port=chosen.port,
        share=chosen.share,
        prevent_thread_lock=True,
        mcp_server=mcp.is_installed(),
        app_kwargs={
            "routes": routes,
            "middleware": [*([key_check] if chosen.api_key else []), Middleware(LimitBody, limits=chosen.limits)],
        },
        **LAUNCH,
    )
    launched.set()
    mcp.answer_in_json(demo)
    if chosen.api_key:
        mcp.hand_over_key(demo, chosen.api_key)
    return demo, parts


def load(parts: Parts) -> None:
    """Load the checkpoints, then write what the page opens with."""
    parts.shelf.load()
    parts.openings.write_all()


def main() -> None:
    if os.environ.get("SPACE_ID"):
        os.environ.setdefault("FORWARDED_ALLOW_IPS", "*")  # visitors come through the Hub's proxy: tell them apart
    chosen = settings.read(sys.argv[1:], os.environ)
    try:
        choose_device(chosen.device)
        settings.check_address(chosen.host, chosen.port)
    except (ValueError, OSError) as error:
        print(f"app.py: {error}", file=sys.stderr)
        sys.exit(2)
    asked_to_end = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked_to_end.set())
    demo, parts = start(chosen)
    threading.Thread(target=load, args=[parts], name="loader", daemon=True).start()
    asked_to_end.wait()
    parts.engines.close(chosen.limits.grace_seconds)
    closer = threading.Thread(target=demo.close, kwargs={"verbose": False}, daemon=True)
    closer.start()
    closer.join(CLOSING_SECONDS)  # enough to send what is written; who does not read it is not waited for
    sys.stdout.flush()
    os._exit(0)  # the loader may still be at work in torch, which an interpreter that ends would abort


if __name__ == "__main__":
    main()
