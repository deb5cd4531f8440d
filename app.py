"""Headscope: a GPT on a web page, with every attention head in view. Run ``python app.py --help``."""

import os
import signal
import socket
import sys
import threading

import gradio as gr
from starlette.middleware import Middleware

from model.checkpoint import choose_device
from web import settings
from web.api import api_routes
from web.attention_view import asset_route
from web.engines import Engines
from web.errors import LimitBody
from web.keys import RequireKey
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


def start(chosen: Settings) -> tuple[gr.Blocks, Parts]:
    """Open the port; everything but the models is there when this returns."""
    shelf, runs, metrics = Shelf(chosen), Runs(), Metrics()
    engines = Engines(chosen.limits, metrics)
    metrics.watch(engines, runs)
    parts = Parts(shelf, runs, Openings(shelf, runs), engines, Traces(chosen.limits))
    demo = build(parts, with_key=chosen.api_key is not None)
    launched = threading.Event()
    same_site = "none" if os.environ.get("SPACE_ID") else "lax"  # a Space is shown inside another site's frame
    key_check = Middleware(RequireKey, key=chosen.api_key or "", launched=launched, same_site=same_site)
    demo.launch(
        server_name=chosen.host,
        server_port=chosen.port,
        share=chosen.share,
        prevent_thread_lock=True,
        app_kwargs={
            "routes": [
                *[*api_routes(parts), *row_routes(shelf, runs).routes, *learn_routes(parts).routes],
                *[asset_route(), lesson_route()],
            ],
            "middleware": [*([key_check] if chosen.api_key else []), Middleware(LimitBody, limits=chosen.limits)],
        },
        **LAUNCH,
    )
    launched.set()
    return demo, parts


def load(parts: Parts) -> None:
    """Load the checkpoints, then write what the page opens with."""
    parts.shelf.load()
    parts.openings.write_all()


def check_address(host: str, port: int) -> None:
    """Raise ``OSError`` where nobody can listen; Gradio's own words would advise what is not ours."""
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        raise OSError(f"cannot listen on {host}:{port} ({error.strerror or error})") from None


def main() -> None:
    chosen = settings.read(sys.argv[1:], os.environ)
    try:
        choose_device(chosen.device)
        check_address(chosen.host, chosen.port)
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
    demo.close(verbose=False)


if __name__ == "__main__":
    main()
