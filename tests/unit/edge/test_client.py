"""The client's address of a request, with and without proxies."""

import pytest

from web.client import client_at, client_in, set_client_address

PEER = ("10.1.2.3", 5000)


def address(n_proxies: int, *headers: str) -> str:
    fields = [(b"x-forwarded-for", header.encode()) for header in headers]
    scope = {"type": "http", "client": PEER, "headers": fields}
    set_client_address(scope, n_proxies)
    return str(scope["client"][0])


@pytest.mark.parametrize(
    ("n_proxies", "headers", "expected"),
    [
        (0, [], PEER[0]),
        (0, ["192.0.2.1"], PEER[0]),
        (1, [], PEER[0]),
        (1, ["192.0.2.1"], "192.0.2.1"),
        (1, ["made up", "192.0.2.1"], "192.0.2.1"),
        (1, ["8.8.8.8, 9.9.9.9, 192.0.2.1"], "192.0.2.1"),
        (2, ["8.8.8.8, 192.0.2.1, 10.0.0.1"], "192.0.2.1"),
        (2, ["8.8.8.8", "192.0.2.1,10.0.0.1"], "192.0.2.1"),
        (2, ["192.0.2.1"], "192.0.2.1"),
        (1, ["192.0.2.1:4711"], "192.0.2.1"),
        (1, ["[2001:db8::1]:4711"], "2001:db8::1"),
        (1, ["2001:DB8:0::1"], "2001:db8::1"),
        (1, ["unknown"], PEER[0]),
        (1, [""], PEER[0]),
        (1, ["a" * 10_000], PEER[0]),
        (1, ["," * 10_000], PEER[0]),
    ],
)
def test_only_what_trusted_proxies_added_counts(n_proxies: int, headers: list[str], expected: str) -> None:
    assert address(n_proxies, *headers) == expected


def test_a_connection_without_an_address() -> None:
    scope = {"type": "http", "client": None, "headers": []}
    set_client_address(scope, 0)
    assert client_in(scope) is None


@pytest.mark.parametrize(
    ("host", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("2001:db8:1:2::/64", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unix", "unix"),
    ],
)
def test_a_customer_with_ipv6_is_one_client(host: str, client: str) -> None:
    """An IPv6 client usually has a whole network of addresses."""
    assert client_at(host) == client
