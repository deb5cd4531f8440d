"""Whose address a request has, behind proxies and without."""

import pytest

from web.edge.client_address import client_address
from web.serving.on_behalf import HEADER, on_behalf_of

PEER = ("10.1.2.3", 5000)


def address(n_proxies: int, *headers: str) -> str:
    fields = [(b"x-forwarded-for", header.encode()) for header in headers]
    found = client_address({"type": "http", "client": PEER, "headers": fields}, n_proxies)
    assert found is not None
    return found[0]


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
    assert client_address({"type": "http", "client": None, "headers": []}, 0) is None


@pytest.mark.parametrize("n_proxies", [0, 1])
def test_what_the_server_sends_itself_counts_as_the_one_it_is_sent_for(n_proxies: int) -> None:
    own = [(name.encode(), value.encode()) for name, value in on_behalf_of("192.0.2.7").items()]
    given = [(HEADER.encode(), value) for value in (b"192.0.2.7", b"x 192.0.2.7", b" 192.0.2.7", b"", b"\xff \xff")]
    for header, expected in [(own[0], "192.0.2.7"), *((each, PEER[0]) for each in given)]:
        found = client_address({"type": "http", "client": PEER, "headers": [header]}, n_proxies)
        assert found is not None and found[0] == expected
