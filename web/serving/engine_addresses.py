"""The flags that name remote engines: which engine writes for which model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from ..settings import Settings
from .served_models import name_sources


@dataclass(frozen=True)
class EngineAddress:
    """An engine's address: ``url`` ends in /v1; ``model`` is its name for the model, or None if the engine must be
    asked for it."""

    url: str
    model: str | None = None
    key: str | None = None


def parse_addresses(settings: Settings) -> Mapping[str, EngineAddress]:
    """The address of each model's remote engine, by the model's name. Raises ``ValueError`` for bad settings."""
    names = list(name_sources(settings.checkpoints))
    url_of = by_model(names, settings.engine_urls, "--engine-url")
    if settings.engine_models and not url_of:
        raise ValueError("--engine-model requires --engine-url")
    model_of = by_model(list(url_of), settings.engine_models, "--engine-model")
    return {
        name: EngineAddress(parse_url(url), model_of.get(name), settings.engine_key) for name, url in url_of.items()
    }


def by_model(names: Sequence[str], given: Sequence[str], flag: str) -> dict[str, str]:
    """The value given for each model: VALUE applies to all models, and MODEL=VALUE, in any order, overrides it."""
    for_all: dict[str, str] = {}
    for_one: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or "://" in name:
            for_all = dict.fromkeys(names, text)
        elif name in names:
            for_one[name] = value
        else:
            raise ValueError(f"{flag} names {name}, which is not one of the models: {', '.join(names)}")
    return for_all | for_one


def parse_url(text: str) -> str:
    """The base URL of an engine's routes, without a trailing slash. Raises ``ValueError`` if it is not one."""
    parts = urlsplit(text)
    url = text.rstrip("/")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"--engine-url must be like http://HOST:PORT/v1, found {text!r}")
    if not parts.path.strip("/"):
        raise ValueError(f"--engine-url must be the base URL of the engine's routes, {url}/v1, found {text!r}")
    return url
