"""Generated requests to every route: each gets a short answer, and none a 500 or a traceback."""

from itertools import islice

import httpx
import pytest

from helpers import also_slow
from helpers.server import Server
from helpers.siege.generated import Generated, good_bodies
from helpers.siege.watch import answer_all, own_routes


def test_every_route_that_takes_a_body_is_among_them(server: Server) -> None:
    posts = {path for method, path in own_routes(server) if method == "POST"}
    assert posts <= set(good_bodies(""))


@pytest.mark.slow
def test_good_bodies_are_good(server: Server) -> None:
    refused = {}
    with httpx.Client(base_url=server.url, timeout=60) as client:
        for path, body in good_bodies(server.served.models["tiny"].sha256).items():
            if "{" not in path and not path.startswith("/train"):
                answer = client.post(path, json=body)
                if answer.status_code not in (200, 204):
                    refused[path] = answer.text
    assert set(refused) == {"/look/snapshot"}, refused  # this model has none


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, *also_slow(2)])
def test_generated_requests(server: Server, seed: int, capfd: pytest.CaptureFixture[str]) -> None:
    gets = [path for method, path in own_routes(server) if method == "GET"]
    generated = Generated(seed, server.served.models["tiny"].sha256, gets)
    answer_all(server, islice(generated, 500))
    assert "Traceback" not in capfd.readouterr().err
