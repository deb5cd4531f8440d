"""All middlewares, in the order in which a request passes them."""

import threading
from collections.abc import Sequence
from typing import Literal

import gradio as gr
from starlette.middleware import Middleware
from starlette.types import ASGIApp

from ..api.auth import ApiKeyMiddleware
from ..api.model_token import ModelTokenMiddleware
from ..client import ClientMiddleware
from ..page.first_screen import FirstScreenMiddleware
from ..request_path import RootPathMiddleware
from ..services import Services
from ..serving.budget import Budget
from ..settings import BodyLimit, Settings
from ..training.routes import UPLOAD
from ..training.visitor_cookie import VisitorMiddleware
from .bodies import BodyFormatMiddleware, ResponseBudgetMiddleware
from .body_limit import BodyLimitMiddleware, ask_limits
from .gradio_queue import GradioQueueMiddleware, GradioRouteMiddleware, QueueSessions
from .logs import RequestLogMiddleware
from .origins import HUB, HostMiddleware, OriginMiddleware
from .page_loads import PageLoadMiddleware


def before_gradio(settings: Settings, budget: Budget) -> list[Middleware]:
    """Middleware that must run before Gradio's own CORS and compression, and so is not passed to ``launch``."""
    return [*checks_of_headers(settings), Middleware(ResponseBudgetMiddleware, budget=budget)]


def after_gradio(
    settings: Settings, services: Services, demo: gr.Blocks, launched: threading.Event
) -> list[Middleware]:
    """Middleware between Gradio's own and the routes, in the form that ``launch`` takes.

    No API key is required until ``launched`` is set, because Gradio's own first request has none.
    """
    return [
        Middleware(GradioRouteMiddleware),
        *checks_of_bodies(settings, services.budget, launched, uploads=[UPLOAD]),
        Middleware(GradioQueueMiddleware, sessions=QueueSessions(demo, services.limits, services.uncollected_answers)),
        Middleware(VisitorMiddleware),
        Middleware(ModelTokenMiddleware, models=services.served.private),
        Middleware(PageLoadMiddleware, max_waiting=services.limits.max_connections),
        Middleware(FirstScreenMiddleware, services=services, demo=demo, with_training=settings.train),
    ]


def for_routes(settings: Settings, budget: Budget) -> list[Middleware]:
    """Middleware for routes without Gradio, behind a server that is not ours."""
    launched = threading.Event()
    launched.set()
    return [
        Middleware(ClientMiddleware, n_proxies=settings.trusted_proxies),
        *checks_of_headers(settings),
        *checks_of_bodies(settings, budget, launched),
    ]


def checks_of_headers(settings: Settings) -> list[Middleware]:
    # Without a key, any site may embed the page in a frame, as Spaces are meant to be embedded.
    frames = None if settings.api_key is None else HUB if settings.is_space else ()
    return [
        Middleware(RootPathMiddleware, root=settings.root_path),
        Middleware(RequestLogMiddleware, access_log=settings.access_log, log_format=settings.log_format),
        Middleware(HostMiddleware, allowed=allowed_hosts(settings), trusted_proxies=settings.trusted_proxies),
        Middleware(
            OriginMiddleware,
            allowed=settings.allowed_origins,
            frames=frames,
            trusted_proxies=settings.trusted_proxies,
        ),
    ]


def checks_of_bodies(
    settings: Settings, budget: Budget, launched: threading.Event, uploads: Sequence[str] = ()
) -> list[Middleware]:
    """Middleware for the API key and for bodies; ``uploads`` are the paths that take texts to train on."""
    limits, key = settings.limits, []
    if settings.api_key is not None:
        # A Space is shown inside another site's frame.
        same_site: Literal["lax", "none"] = "none" if settings.is_space else "lax"
        key = [Middleware(ApiKeyMiddleware, key=settings.api_key, launched=launched, same_site=same_site)]
    limits_by_path = ask_limits(limits) | dict.fromkeys(uploads, BodyLimit(limits.max_training_bytes))
    return [
        *key,
        Middleware(BodyLimitMiddleware, limits=limits, budget=budget, limits_by_path=limits_by_path),
        Middleware(BodyFormatMiddleware, texts=uploads),
    ]


def allowed_hosts(settings: Settings) -> list[str]:
    """The names of the server, apart from those of the machine: the operator's, those of a Space, and ``--share``'s."""
    return [*settings.allowed_hosts, *settings.space_hosts, *(["*.gradio.live"] if settings.share else [])]


def wrap(app: ASGIApp, middlewares: list[Middleware]) -> ASGIApp:
    """``app`` wrapped in ``middlewares``; the first one is the outermost."""
    for middleware, args, kwargs in reversed(middlewares):
        app = middleware(app, *args, **kwargs)
    return app
