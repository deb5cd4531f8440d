"""What every request passes first: before Gradio's own middleware, and right behind it."""

import os
import threading

from starlette.middleware import Middleware
from starlette.types import ASGIApp

from ..api.auth import RequireKey, SameSite
from ..settings import Settings
from .origins import HUB, CheckOrigin
from .request_log import NameRequests


def in_front(chosen: Settings, app: ASGIApp) -> ASGIApp:
    """Gradio's app behind what every request passes first."""
    # Without a key anybody may show the page in a frame, as Spaces are meant to be shown.
    frames = None if chosen.api_key is None else HUB if os.environ.get("SPACE_ID") else ()
    checked = CheckOrigin(app, chosen.allowed_origins, frames, chosen.trusted_proxies)
    return NameRequests(checked, access_log=chosen.access_log)


def key_check(chosen: Settings, launched: threading.Event) -> list[Middleware]:
    """The check of the API key, if there is one; Gradio's own first request has none until ``launched``."""
    if chosen.api_key is None:
        return []
    # A Space is shown inside another site's frame.
    same_site: SameSite = "none" if os.environ.get("SPACE_ID") else "lax"
    return [Middleware(RequireKey, key=chosen.api_key, launched=launched, same_site=same_site)]
