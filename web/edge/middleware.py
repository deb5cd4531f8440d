"""All middlewares, in the order in which a request passes them."""

import os
import threading
from typing import Literal

import gradio as gr
from starlette.middleware import Middleware
from starlette.types import ASGIApp

from ..api.auth import ApiKeyMiddleware
from ..api.model_token import ModelTokenMiddleware
from ..ask.question import BodyLimit
from ..services import Services
from ..serving.budget import Budget
from ..settings import Settings
from ..training.routes import UPLOAD
from ..training.visitor_cookie import VisitorMiddleware
from .bodies import BodyFormatMiddleware, ResponseBudgetMiddleware
from .body_limit import BodyLimitMiddleware, ask_limits
from .gradio_queue import GradioQueueMiddleware, GradioRouteMiddleware, QueueSessions
from .logs import RequestLogMiddleware
from .origins import ANY, HUB, HostMiddleware, OriginMiddleware


def before_gradio(settings: Settings, budget: Budget) -> list[Middleware]:
    """Middleware that must run before Gradio's own CORS and compression, and so is not passed to ``launch``."""
    # Without a key, any site may embed the page in a frame, as Spaces are meant to be embedded.
    frames = None if settings.api_key is None else HUB if os.environ.get("SPACE_ID") else ()
    return [
        Middleware(RequestLogMiddleware, access_log=settings.access_log, log_format=settings.log_format),
        Middleware(HostMiddleware, allowed=allowed_hosts(settings)),
        Middleware(
            OriginMiddleware,
            allowed=settings.allowed_origins,
            frames=frames,
            trusted_proxies=settings.trusted_proxies,
        ),
        Middleware(ResponseBudgetMiddleware, budget=budget),
    ]


def after_gradio(
    settings: Settings, services: Services, demo: gr.Blocks, launched: threading.Event
) -> list[Middleware]:
    """Middleware between Gradio's own and the routes, in the form that ``launch`` takes.

    No API key is required until ``launched`` is set, because Gradio's own first request has none.
    """
    limits = services.limits
    limits_by_path = ask_limits(limits) | {UPLOAD: BodyLimit(limits.max_training_bytes)}
    key = []
    if settings.api_key is not None:
        # A Space is shown inside another site's frame.
        same_site: Literal["lax", "none"] = "none" if os.environ.get("SPACE_ID") else "lax"
        key = [Middleware(ApiKeyMiddleware, key=settings.api_key, launched=launched, same_site=same_site)]
    return [
        Middleware(GradioRouteMiddleware),
        *key,
        Middleware(BodyLimitMiddleware, limits=limits, budget=services.budget, limits_by_path=limits_by_path),
        Middleware(BodyFormatMiddleware, texts=[UPLOAD]),
        Middleware(GradioQueueMiddleware, sessions=QueueSessions(demo, limits, services.uncollected_answers)),
        Middleware(VisitorMiddleware),
        Middleware(ModelTokenMiddleware, models=services.served.private),
    ]


def allowed_hosts(settings: Settings) -> list[str]:
    if os.environ.get("SPACE_ID"):
        return [ANY]  # reachable only under names that the Hub assigns, which may include a custom domain
    return [*settings.allowed_hosts, *(["*.gradio.live"] if settings.share else [])]


def wrap(app: ASGIApp, middlewares: list[Middleware]) -> ASGIApp:
    """``app`` wrapped in ``middlewares``; the first one is the outermost."""
    for middleware, args, kwargs in reversed(middlewares):
        app = middleware(app, *args, **kwargs)
    return app
