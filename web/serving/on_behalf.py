"""Requests that the server sends to itself for a client, whose turn they take."""

import secrets

from starlette.datastructures import Headers

HEADER = "x-headscope-on-behalf"  # in lower case, as the headers that a call brings along are: it replaces them
PASSWORD = secrets.token_hex(16)  # so that nobody else can say so


def on_behalf_of(host: object) -> dict[str, str]:
    """The header of a request that is sent for the client at ``host``."""
    return {HEADER: f"{PASSWORD} {host}"}


def sent_for(headers: Headers) -> str | None:
    """Whom a request was sent for; None where it came from a client."""
    password, _, host = headers.get(HEADER, "").partition(" ")
    return host if secrets.compare_digest(password.encode(), PASSWORD.encode()) else None
