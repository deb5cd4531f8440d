"""Who a request comes from, where proxies that are trusted pass it on."""

from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.types import Scope

from ..serving.on_behalf import sent_for

Address = tuple[str, int]


def client_address(scope: Scope, n_proxies: int) -> Address | None:
    """The address of the client behind ``n_proxies`` trusted proxies.

    Each proxy adds the address that it was called from at the right-hand end of ``X-Forwarded-For``; whatever is
    further left was sent by the client and can be made up. Without a usable address there, it is the connection's own.
    """
    peer: Address | None = scope.get("client")
    headers = Headers(scope=scope)
    host = sent_for(headers)
    if host is not None:
        return host, 0
    if not n_proxies:
        return peer
    fields = headers.getlist("x-forwarded-for")
    hosts = [host.strip() for host in ",".join(fields).split(",")]
    host = without_port(hosts[-n_proxies] if len(hosts) >= n_proxies else hosts[0])
    try:
        return str(ip_address(host)), 0
    except ValueError:
        return peer


def client_host(scope: Scope) -> str | None:
    """Whose turn a request takes, once ``client_address`` has been put into its scope."""
    return scope["client"][0] if scope.get("client") else None


def without_port(host: str) -> str:
    """``1.2.3.4`` of ``1.2.3.4:5``, ``::1`` of ``[::1]:5``."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0] if host.count(":") == 1 else host
