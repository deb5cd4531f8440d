"""The token of a model that a visitor trained: with it, and never with a cookie, the model answers under /v1."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from helpers.server import Server
from helpers.training.visitors import Visitor, learn_nothing, quick_server

HEADER = "Headscope-Model-Token"


@pytest.fixture
def owner(quick: Server) -> Iterator[Visitor]:
    visitor = Visitor(quick)
    assert visitor.train().status_code == 200
    yield visitor
    visitor.post("/train/forget")


@pytest.fixture
def done(owner: Visitor) -> dict[str, Any]:
    """The last event of the training: the name and the token of the model."""
    return list(owner.events())[-1]


def test_the_model_answers_to_its_token(quick: Server, done: dict[str, Any]) -> None:
    name, program = done["name"], httpx.Client(base_url=quick.url, headers={HEADER: done["token"]}, timeout=60)
    assert [each["id"] for each in program.get("/v1/models").json()["data"]] == ["tiny", name]
    assert program.get(f"/v1/models/{name}").json()["id"] == name
    prompt = {"model": name, "prompt": "the cat"}
    completion = program.post("/v1/completions", json=prompt | {"max_tokens": 3, "seed": 1}).json()
    assert completion["model"] == name and completion["usage"]["completion_tokens"] == 3
    assert program.post("/v1/attention", json=prompt).json()["tokens"][0]["text"] == "t"
    assert program.post("/tokenize", json=prompt).json()["count"] == 7
    assert program.post("/v1/lens/logit-lens", json=prompt).status_code == 200
    # Without the token it does not exist, and its name is not in the metrics.
    assert [each["id"] for each in httpx.get(f"{quick.url}/v1/models").json()["data"]] == ["tiny"]
    assert name not in httpx.get(f"{quick.url}/metrics").text


def test_the_cookie_does_not_suffice(owner: Visitor, done: dict[str, Any]) -> None:
    body = {"model": done["name"], "prompt": "the cat"}
    for path in ("/v1/completions", "/v1/attention", "/tokenize"):
        refused = owner.post(path, json=body)
        assert refused.status_code == 404
        assert HEADER in refused.json()["error"]["message"]
    # Nor does the token open what belongs to the cookie.
    stranger = httpx.Client(base_url=str(owner.base_url), headers={HEADER: done["token"]})
    for path in ("events", "model.zip"):
        assert stranger.get(f"/train/{path}").status_code == 404
    assert stranger.get("/train/state").json()["mine"] is None
    assert [each["name"] for each in stranger.get("/look/landing").json()["models"]] == ["tiny"]


@pytest.mark.parametrize("token", ["x" * 32, "", "é"])
def test_a_foreign_token_is_refused(owner: Visitor, done: dict[str, Any], token: str) -> None:
    # Neither the cookie, nor a model that everyone may use, makes up for a wrong token.
    headers = {HEADER: token.encode()}
    for path in ("/v1/completions", "/v1/lens/logit-lens"):
        refused = owner.post(path, headers=headers, json={"model": "tiny", "prompt": "a"})
        assert refused.status_code == 401
        error = refused.json()["error"]
        assert error["code"] == "invalid_model_token"
        assert error["message"].startswith(f"No model here has the token in {HEADER}.")


def test_the_token_ends_with_the_model(owner: Visitor, done: dict[str, Any]) -> None:
    token = {HEADER: done["token"]}
    assert owner.get("/v1/models", headers=token).status_code == 200
    owner.post("/train/forget")
    assert owner.get("/v1/models", headers=token).status_code == 401


def test_an_api_key_is_still_required(checkpoints: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learn_nothing(monkeypatch, checkpoints / "tiny")
    for server in quick_server(checkpoints, api_key="secret"):
        key = {"Authorization": "Bearer secret"}
        visitor = Visitor(server)
        visitor.headers.update(key)
        visitor.train()
        done = list(visitor.events())[-1]
        token = {HEADER: done["token"]}
        assert httpx.get(f"{server.url}/v1/models", headers=token).status_code == 401
        both = httpx.get(f"{server.url}/v1/models", headers=token | key).json()["data"]
        assert [each["id"] for each in both] == ["tiny", done["name"]]


def test_every_token_is_compared(quick: Server, owner: Visitor, done: dict[str, Any]) -> None:
    private = quick.served.private
    found = private.owner_of(done["token"])
    assert found is not None and private.by_visitor[found].loaded.name == done["name"]
    assert len(done["token"]) == 32 and done["token"] != found
    assert private.owner_of(done["token"][:-1]) is None
