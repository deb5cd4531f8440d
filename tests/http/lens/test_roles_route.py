"""/v1/lens/roles: the roles of all heads, as the page shows them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from gradio_client import Client

from helpers.models import tiny_model
from helpers.server import Server
from model.lens.head_roles import CLEAR_COPYING, CLEAR_ROLE, LOOKS, copying_scores, role_scores, sampled_tokens
from web.training.visitor_cookie import cookie_name, new_visitor


def get(server: Server, **query: str) -> httpx.Response:
    return httpx.get(f"{server.url}/v1/lens/roles", params=query, timeout=60)


def test_role_scores_come_with_the_uniform_baseline(server: Server) -> None:
    loaded = server.served.models["tiny"]
    expected, copying = role_scores(loaded), copying_scores(loaded.gpt, sampled_tokens(loaded))
    found = get(server, model="tiny").json()
    assert found["threshold"] == CLEAR_ROLE and found["copying_threshold"] == CLEAR_COPYING
    assert found["precision"] == {"computed": "float32", "served": "float32"}
    assert [len(row) for row in found["heads"]] == [4, 4, 4]
    for layer, row in enumerate(found["heads"]):
        for index, head in enumerate(row):
            own = {role: float(expected.scores[role][layer, index]) for role in LOOKS}
            own["entropy"] = float(expected.entropy[layer, index])
            own["copying"] = float(copying[layer, index])
            assert head["scores"] == pytest.approx(own, abs=1e-6)
            assert head["baseline"]["induction"] == pytest.approx(expected.uniform)
            assert head["baseline"]["entropy"] == pytest.approx(expected.uniform_entropy)
            assert (head["label"] == "no clear role") == (max(own[role] for role in LOOKS) < CLEAR_ROLE)


def test_private_models_answer_only_their_owner(server: Server) -> None:
    visitor, name = new_visitor(), cookie_name({"scheme": "http", "headers": []})
    private = server.served.private
    private.add(visitor, replace(server.served.models["other"], name="my-own"), Path("nowhere"))
    url = f"{server.url}/v1/lens/roles?model=my-own"
    try:
        found = httpx.get(url, cookies={name: visitor}, timeout=60)
        assert found.status_code == 200 and found.json()["heads"] == get(server, model="other").json()["heads"]
        for cookies in ({}, {name: new_visitor()}):
            assert httpx.get(url, cookies=cookies, timeout=60).status_code == 404
    finally:
        private.remove(visitor)


def test_roles_over_gradio(server: Server) -> None:
    client = Client(server.url, verbose=False)
    assert client.predict("other", api_name="/roles") == get(server, model="other").json()
    client.close()


def test_too_short_a_context_is_refused(launch: Any, tmp_path: Any) -> None:
    tiny_model(context_length=3).save(tmp_path / "short")
    error = get(launch(tmp_path / "short")).json()["error"]
    assert error["param"] == "model" and "at least 4" in error["message"]
