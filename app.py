"""Headscope: a GPT on a web page, with every attention head in view. Run ``python app.py --help``."""

import gc

gc.disable()  # collecting garbage while 2,500 modules are imported takes half a second and finds none

import logging
import os
import sys
import threading

import gradio as gr

from web import settings
from web.api.errors import OUTSIDE_V1
from web.api.gradio_endpoints import endpoints
from web.api.mcp import McpServer
from web.api.routes import api_routes
from web.assets import asset_route
from web.edge.logs import set_up_logs
from web.edge.middleware import after_gradio
from web.edge.server import configured_server, exit_now, listen_for_signals
from web.learn.routes import learn_routes
from web.page.blocks import LAUNCH, build
from web.page.link_preview import picture_route
from web.page.routes import page_routes
from web.page.writer import PageWriter
from web.runs.compare_routes import compare_routes
from web.runs.routes import run_routes
from web.services import Services, check, make_services
from web.serving.process_memory import share_heaps
from web.training.routes import train_endpoint, train_routes
from web.training.trainings import Trainings

gc.freeze()  # what was imported lives as long as the process: scanning it would pause everything for half a second
gc.enable()

CLOSING_SECONDS = 3.0


def start(chosen: settings.Settings) -> tuple[gr.Blocks, Services]:
    """Open the port. When this returns, everything but the models is ready."""
    services = make_services(chosen)
    writer, trainings = PageWriter(services), Trainings(services)
    callable_by_programs = [*endpoints(services), *([train_endpoint(trainings)] if chosen.train else ())]
    tools = McpServer(callable_by_programs)
    demo = build(services, writer, callable_by_programs, with_key=bool(chosen.api_key), with_tools=bool(tools.routes))
    routes = [*api_routes(services), *tools.routes, *page_routes(services, writer, trainings).routes]
    routes += [
        *run_routes(services.snapshots, services.runs, services.page_pool, services.budget).routes,
        *compare_routes(services.snapshots, services.runs, services.page_pool).routes,
        *learn_routes(services).routes,
        *(train_routes(trainings).routes if chosen.train else ()),
        asset_route(),
        picture_route(),
    ]
    launched = threading.Event()
    with configured_server(chosen, services.budget, services.metrics):
        demo.launch(
            server_name=chosen.host,
            server_port=chosen.port,
            root_path=chosen.root_path,
            share=chosen.share,
            quiet=chosen.log_format == "json" and not chosen.share,  # Gradio prints the addresses as text
            app_kwargs={
                "routes": routes,
                "lifespan": tools.lifespan,
                "exception_handlers": OUTSIDE_V1,
                "middleware": after_gradio(chosen, services, demo, launched),
            },
            **LAUNCH,
        )
    launched.set()
    return demo, services


def main() -> None:
    chosen = settings.parse(sys.argv[1:], os.environ)
    set_up_logs(chosen.log_level, chosen.log_format)
    try:
        check(chosen)
    except (ValueError, OSError) as error:
        logging.getLogger("app.py").critical("%s", error)
        sys.exit(2)
    share_heaps()
    stopping = listen_for_signals()
    demo, services = start(chosen)
    threading.Thread(target=services.load_and_freeze, name="loader", daemon=True).start()
    while not stopping.wait(1):  # a signal that arrives just before a wait does not end that wait
        pass
    services.close(chosen.limits.grace_seconds)
    closer = threading.Thread(target=demo.close, kwargs={"verbose": False}, daemon=True)
    closer.start()
    closer.join(CLOSING_SECONDS)  # enough to send finished responses; clients that do not read are not waited for
    sys.stdout.flush()
    exit_now(0)  # the loader may still be inside torch, where a normal interpreter shutdown would abort


if __name__ == "__main__":
    main()
