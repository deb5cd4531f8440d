"""Which client a request belongs to: one rule for turns, budgets, connections and wrong API keys."""

from ipaddress import IPv6Address, ip_address, ip_network
from typing import Protocol

from starlette.datastructures import Address, Headers
from starlette.types import ASGIApp, Receive, Scope, Send

IPV6_PREFIX = 64  # bits: the size of network that a provider assigns to one customer


class HasClient(Protocol):
    """A request, either Starlette's or Gradio's."""

    @property
    def client(self) -> Address | None: ...


def client_of(request: HasClient) -> str | None:
    """The client that a request is counted for: an IPv4 address, or the /64 network of an IPv6 address."""
    return client_at(request.client.host) if request.client else None


def client_in(scope: Scope) -> str | None:
    """``client_of`` for a request that is not parsed yet, after ``set_client_address`` has updated its scope."""
    return client_at(scope["client"][0]) if scope.get("client") else None


def client_at(host: str) -> str:
    """The client with this address. Anything that is not an address, such as a network, is returned unchanged."""
    if ":" not in host:
        return host
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ip_network((int(address), IPV6_PREFIX), strict=False))


def set_client_address(scope: Scope, n_proxies: int) -> None:
    """Set the address in ``scope`` to that of the client behind ``n_proxies`` trusted proxies.

    Each proxy appends the address that it was called from to ``X-Forwarded-For``. Anything further left was sent by the
    client and may be forged. If the header has no usable address, the connection's own is kept.
    """
    headers = Headers(scope=scope)
    if n_proxies:
        hosts = [host.strip() for host in ",".join(headers.getlist("x-forwarded-for")).split(",")]
        host = without_port(hosts[-n_proxies] if len(hosts) >= n_proxies else hosts[0])
        try:
            scope["client"] = str(ip_address(host)), 0
        except ValueError:
            return


class ClientMiddleware:
    """Calls ``set_client_address`` for every request; the connections of ``seams/uvicorn.py`` do so themselves."""

    def __init__(self, app: ASGIApp, n_proxies: int) -> None:
        self.app, self.n_proxies = app, n_proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            set_client_address(scope, self.n_proxies)
        await self.app(scope, receive, send)


def without_port(host: str) -> str:
    """``1.2.3.4`` of ``1.2.3.4:5``, ``::1`` of ``[::1]:5``."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0] if host.count(":") == 1 else host
