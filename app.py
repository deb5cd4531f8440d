"""Headscope: a GPT on a web page, with every attention head in view. Run ``python app.py --help``."""

import os
import sys
import threading

from starlette.middleware import Middleware

from web import settings
from web.api import api_routes
from web.attention_view import asset_route
from web.keys import RequireKey
from web.openings import Openings
from web.page import LAUNCH, build
from web.rows import row_routes
from web.runs import Runs
from web.settings import Settings
from web.shelf import Shelf
from web.workspace import Parts
from web.writer import Writer


def serve(chosen: Settings) -> None:
    """Open the port, load the checkpoints, and serve until interrupted."""
    shelf, runs, writer = Shelf(chosen), Runs(), Writer()
    openings = Openings(shelf, runs)
    demo = build(Parts(shelf, runs, openings, writer), with_key=chosen.api_key is not None)
    launched = threading.Event()
    same_site = "none" if os.environ.get("SPACE_ID") else "lax"  # a Space is shown inside another site's frame
    key_check = Middleware(RequireKey, key=chosen.api_key or "", launched=launched, same_site=same_site)
    try:
        demo.launch(
            server_name=chosen.host,
            server_port=chosen.port,
            share=chosen.share,
            prevent_thread_lock=True,
            app_kwargs={
                "routes": [*api_routes(shelf).routes, *row_routes(shelf, runs).routes, asset_route()],
                "middleware": [key_check] if chosen.api_key else [],
                "max_body_size": settings.MAX_BODY_BYTES,
            },
            **LAUNCH,
        )
    except OSError as error:
        sys.exit(f"Cannot listen on {chosen.host}:{chosen.port}: {error}")
    launched.set()

    def load() -> None:
        shelf.load()
        openings.write_all()

    threading.Thread(target=load, name="loader", daemon=True).start()
    try:
        demo.block_thread()
    finally:
        writer.close()


if __name__ == "__main__":
    serve(settings.read(sys.argv[1:], os.environ))
