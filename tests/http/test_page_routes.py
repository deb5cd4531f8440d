"""The page's start and the snapshots of a training: the routes under /look apart from the stream."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import numpy as np
import pytest

from helpers.links import LINK_SETTINGS, encode_ids
from helpers.runs import frame, lower
from helpers.server import Server, save_tiny
from model import load
from model.checkpoint.write import write_snapshot
from web.serving.snapshots import weight_bytes

STEPS = (0, 10, 20, 40, 80, 160)


def landing(server: Server, **query: Any) -> Any:
    answer = httpx.get(f"{server.url}/look/landing", params=query)
    assert answer.status_code == 200 and answer.headers["cache-control"] == "no-store"
    return answer.json()


def test_page_starts_with_the_first_models_opening(server: Server) -> None:
    found = landing(server)
    assert [model["name"] for model in found["models"]][:2] == ["tiny", "other"]
    assert "3 layers × 4 heads" in found["models"][0]["facts"]
    pointer = found["pointer"]
    opening = server.services.openings.written.entries["tiny"]
    assert (pointer["state"], pointer["model"], pointer["tokens"]) == ("opening", "tiny", len(opening.ids))
    assert "broken cannot be served" in pointer["notices"][0]
    assert found["settings"]["prompt"] == "ROMEO:"
    assert landing(server, model="other")["pointer"]["model"] == "other"
    named = landing(server, model="nobody")
    assert named["pointer"]["model"] == "tiny" and "'nobody'" in named["pointer"]["notices"][0]


def test_link_restores_its_text(server: Server) -> None:
    loaded = server.served.models["other"]
    ids = loaded.parse_prompt("to be or not")
    query = {"model": "other", "sha256": loaded.sha256[:16], "ids": encode_ids(ids), "prompt": 5}
    found = landing(server, **query | LINK_SETTINGS)
    pointer = found["pointer"]
    assert (pointer["state"], pointer["model"], pointer["tokens"], pointer["n_prompt"]) == ("linked", "other", 12, 5)
    assert found["settings"]["prompt"] == "to be"
    assert (found["settings"]["seed"], found["settings"]["max_new_tokens"]) == (-3, 20)
    header, _ = frame(httpx.get(f"{server.url}/look/{pointer['run']}/rows").content)
    assert header["ids"] == ids


def test_opening_comes_with_heads_of_the_model(server: Server) -> None:
    for name in ("tiny", "other"):
        pointer = httpx.get(f"{server.url}/look/opening/{name}").json()
        assert (pointer["state"], pointer["model"]) == ("opening", name)
        roles = {"previous_token", "induction", "first_token"}
        assert pointer["suggested_heads"] and {each["role"] for each in pointer["suggested_heads"]} <= roles
        for each in pointer["suggested_heads"]:
            assert 0 <= each["head"][0] < pointer["n_layer"] and 0 <= each["head"][1] < pointer["n_head"]
            assert 0 <= each["score"] <= 1
    answer = httpx.get(f"{server.url}/look/opening/nobody")
    assert answer.status_code == 404 and "'nobody'" in answer.json()["detail"]


@pytest.fixture(scope="module")
def trained(checkpoints: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with "kept", whose snapshots have other seeds and a training report, and "tiny", which has none."""
    from helpers.server import start

    folder = save_tiny(tmp_path_factory.mktemp("trained") / "kept")
    for step in STEPS:
        other = load(save_tiny(folder.parent / f"at-{step}", seed=step + 1))
        write_snapshot(folder, step, other.config, other.gpt.state_dict())
    report = {"history": [{"step": 0, "val_loss": 4.2}], "heads": [{"step": 0}], "settings": {"secret": 1}}
    (folder / "training.json").write_text(json.dumps(report))
    server = start(folder, checkpoints / "tiny")
    yield server
    server.close()


def read_at(server: Server, step: Any, **changes: Any) -> httpx.Response:
    ids = server.served.models["tiny"].parse_prompt("But soft")
    body = {"model": "kept", "step": step, "ids": ids, "n_prompt": 3} | changes
    return httpx.post(f"{server.url}/look/snapshot", json=body, timeout=60)


def test_snapshots_are_listed(trained: Server) -> None:
    found = httpx.get(f"{trained.url}/look/steps/kept").json()
    assert found["steps"] == list(STEPS) and found["history"] == [{"step": 0, "val_loss": 4.2}]
    assert set(found) == {"steps", "history", "heads", "kept", "on_disk"}
    for name in ("tiny", "nobody", quote("../kept", safe="")):
        assert httpx.get(f"{trained.url}/look/steps/{name}").json() == {"steps": [], "on_disk": []}


def test_text_is_read_with_the_weights_of_a_snapshot(trained: Server) -> None:
    pointer = read_at(trained, 20).json()
    assert (pointer["state"], pointer["training_step"], pointer["model"]) == ("snapshot", 20, "kept@20")
    found = httpx.get(f"{trained.url}/look/{pointer['run']}/heads/1/0?start=0").content
    weights = np.frombuffer(found, np.float32)
    kept = trained.services.snapshots.get("kept", 20)
    before = load(Path(trained.served.sources["kept"]).parent / "at-20")  # not yet in half precision
    for loaded, atol in ((kept, 1e-5), (before, 0.02)):
        np.testing.assert_allclose(weights, lower(loaded.trace("But soft").attention[1, 0]), atol=atol)


def test_opened_snapshots_are_bounded_and_unlisted(trained: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshots = trained.services.snapshots
    n_bytes = weight_bytes(trained.served.models["kept"])
    monkeypatch.setattr(snapshots.cache, "max_bytes", 4 * n_bytes)
    for step in STEPS:
        assert read_at(trained, step).status_code == 200
    assert [step for _, step in snapshots.cache.entries] == list(STEPS[-4:])
    read_with = {run.loaded.name for run in trained.services.runs.cache.values() if "@" in run.loaded.name}
    assert read_with == {f"kept@{step}" for step in STEPS[-4:]}  # nothing refers to the others any more
    first = snapshots.cache.entries["kept", STEPS[-4]]
    read_at(trained, STEPS[-4])
    read_at(trained, STEPS[0])
    assert [step for _, step in snapshots.cache.entries] == [80, 160, 20, 0] and snapshots.cache.entries[
        "kept", 20
    ] is first
    listed = httpx.get(f"{trained.url}/v1/models").json()["data"]
    assert [model["id"] for model in listed] == ["kept", "tiny"]
    assert [model["name"] for model in landing(trained)["models"]] == ["kept", "tiny"]


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"step": 15}, "step", "There is no snapshot of step 15. Available steps: 0, 10, 20"),
        ({"step": 161}, "step", "step must be an integer from 0 to 160"),
        ({"step": -1}, "step", "step must be"),
        ({"model": "tiny"}, "model", "tiny has no snapshots"),
        ({"model": "../kept"}, "model", "has no snapshots"),
        ({"ids": []}, "prompt", ""),
        ({"ids": [10_000]}, "prompt", "10000"),
    ],
)
def test_invalid_snapshot_requests_are_refused(trained: Server, changes: dict[str, Any], field: str, said: str) -> None:
    answer = read_at(trained, **({"step": 20} | changes))
    assert answer.status_code == 400
    assert answer.json()["field"] == field and said in answer.json()["detail"]


def test_a_broken_snapshot_is_refused(trained: Server, launch: Callable[..., Server], tmp_path: Path) -> None:
    folder = save_tiny(tmp_path / "kept")
    (folder / "steps").mkdir()
    (folder / "steps" / "000005.safetensors").write_bytes(b"nothing")
    server = launch(folder)
    answer = read_at_of(server, folder.name)
    assert answer.status_code == 400 and "step 5 cannot be loaded" in answer.json()["detail"]
    assert str(tmp_path) not in answer.text


def read_at_of(server: Server, name: str) -> httpx.Response:
    body = {"model": name, "step": 5, "ids": [1, 2, 3], "n_prompt": 1}
    return httpx.post(f"{server.url}/look/snapshot", json=body, timeout=60)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("snapshot", {"model": "\ud800", "step": 16, "ids": [1], "n_prompt": 1}),
        ("read", {"sha256": "0" * 64, "ids": [1], "n_prompt": 1, "model": "\ud800"}),
        ("read", {"sha256": "\ud800", "ids": [1], "n_prompt": 1, "model": "tiny"}),
        ("read", {"sha256": "0" * 64, "text": "\ud800", "n_prompt": 1, "model": "tiny"}),
        ("again/rows", {"sha256": "\ud800", "ids": [1], "n_prompt": 1}),
        ("scaled/0", {"sha256": "\ud800", "ids": [1], "n_prompt": 1}),
    ],
)
def test_lone_surrogates_are_refused(server: Server, path: str, body: dict[str, Any]) -> None:
    headers = {"Content-Type": "application/json"}
    answer = httpx.post(f"{server.url}/look/{path}", content=json.dumps(body), headers=headers)
    assert answer.status_code == 422 and re.search("half of a surrogate pair|unicode", answer.json()["detail"])
