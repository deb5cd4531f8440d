"""Training over HTTP as the page does it: the events, the resulting model, and who can see it."""

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch

import model
from helpers.models import max_difference
from helpers.server import Server
from helpers.training import TRAINING_TEXT
from helpers.training.visitors import QUICK, Visitor, quick_server
from web.serving.served_models import TOKEN_HEADER
from web.training.visitor_cookie import cookie_name


@pytest.fixture(scope="module")
def quick(checkpoints: Path) -> Iterator[Server]:
    yield from quick_server(checkpoints)


@pytest.fixture(scope="module")
def trained(quick: Server) -> tuple[Visitor, list[dict[str, Any]], str]:
    """A visitor who has trained a GPT, all events, and the name of the model."""
    visitor = Visitor(quick)
    name = visitor.train().json()["name"]
    return visitor, list(visitor.events()), name


@pytest.fixture
def stranger(quick: Server) -> Visitor:
    """Another visitor without a training, with a cookie that looks valid."""
    visitor = Visitor(quick)
    visitor.cookies.set(cookie_name({"scheme": "http", "headers": []}), "x" * 32)
    return visitor


def test_an_id_that_the_visitor_was_given_elsewhere_shows_nothing(quick: Server) -> None:
    name, planted = cookie_name({"scheme": "http", "headers": []}), "A" * 32
    visitor = Visitor(quick)
    visitor.cookies.set(name, planted)
    given = visitor.train().headers["set-cookie"]
    assert planted not in given and "Path=/" in given and "HttpOnly" in given
    planter = Visitor(quick)
    planter.cookies.set(name, planted)
    assert planter.get("/train/state").json()["mine"] is None
    owner = Visitor(quick)
    owner.cookies.set(name, given.partition(";")[0].partition("=")[2])
    assert owner.get("/train/state").json()["mine"]
    assert owner.post("/train/forget").status_code == 204


def test_events_report_loss_heads_and_samples(trained: tuple[Visitor, list[dict[str, Any]], str]) -> None:
    _, events, name = trained
    of: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        of.setdefault(event["kind"], []).append(event)
    states = [event["state"] for event in of["state"]]
    # It waits first if the training of the test before has not ended yet.
    assert states[states[0] == "waiting" :] == ["starting", "training", "finishing", "done"]
    (start,), (end,) = of["start"], of["end"]
    n_characters = len(set(TRAINING_TEXT))
    assert start["vocab_size"] == n_characters and start["n_parameters"] == QUICK.n_parameters(n_characters)
    assert start["validation_tokens"] == len(TRAINING_TEXT) // 10
    assert start["bigram"] < start["uniform"]
    losses = [event["validation_loss"] for event in of["loss"]]
    assert start["watched_tokens"] == start["validation_tokens"]  # few enough to measure them all
    assert end["loss"] == pytest.approx(min(losses), abs=1e-3) and losses[-1] < min(losses) + 0.05
    assert losses[0] == pytest.approx(start["uniform"], abs=0.1) and end["loss"] < losses[0]
    steps = [event["step"] for event in of["snapshot"]]
    assert steps[0] == 0 and {end["step"], end["kept"]} <= set(steps) and len(set(steps)) == len(steps)
    assert all(event["state"] != "failed" and event["name"] == name for event in of["state"])


def test_shown_attention_is_that_of_the_kept_weights(
    trained: tuple[Visitor, list[dict[str, Any]], str], tmp_path: Path
) -> None:
    import base64

    visitor, events, name = trained
    zipfile.ZipFile(io.BytesIO(visitor.get("/train/model.zip").content)).extractall(tmp_path)
    sentence = "".join(next(event["tokens"] for event in events if event["kind"] == "start"))
    snapshots = [event for event in events if event["kind"] == "snapshot"]
    for event in (snapshots[0], snapshots[-1]):
        loaded = model.load(f"{tmp_path / name}@{event['step']:06d}", dtype="float32")
        attention = loaded.trace(sentence).attention.flatten(0, 1)
        below = torch.ones(attention.shape[1:], dtype=torch.bool).tril()
        found = torch.frombuffer(bytearray(base64.b64decode(event["cells"])), dtype=torch.uint8)
        assert max_difference((found / 255) ** 2, attention[:, below].flatten()) < 0.02


def test_downloaded_checkpoint_opens_in_transformers(
    trained: tuple[Visitor, list[dict[str, Any]], str], tmp_path: Path
) -> None:
    transformers = pytest.importorskip("transformers")
    visitor, events, name = trained
    answer = visitor.get("/train/model.zip")
    assert answer.headers["content-disposition"] == f'attachment; filename="{name}.zip"'
    zipfile.ZipFile(io.BytesIO(answer.content)).extractall(tmp_path)
    folder = tmp_path / name
    loaded = model.load(folder, dtype="float32")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    ids = loaded.tokenizer.encode("the cat sat on")
    assert transformers.AutoTokenizer.from_pretrained(folder)("the cat sat on").input_ids == ids
    with torch.no_grad():
        logits = theirs(torch.tensor([ids])).logits[0]
    assert max_difference(logits, loaded.trace(ids).logits) < 1e-4
    card = (folder / "README.md").read_text()
    loss = next(event["loss"] for event in events if event["kind"] == "end")
    assert f"**{loss:.4f}** nats per character" in card and "that a visitor of Headscope chose" in card
    assert json.loads((folder / "training.json").read_text())["finished"]
    assert (folder / "steps").is_dir() and "text.txt" not in [path.name for path in folder.rglob("*")]


def test_trained_model_writes_and_is_traced(
    trained: tuple[Visitor, list[dict[str, Any]], str],
) -> None:
    visitor, events, name = trained
    landing = visitor.get("/look/landing", params={"model": name}).json()
    assert landing["pointer"]["model"] == name and landing["training"]
    assert [each["name"] for each in landing["models"]] == ["tiny", name]
    assert "A text of" in landing["models"][1]["about"]
    steps = visitor.get(f"/look/steps/{name}").json()
    assert steps["steps"] == sorted(event["step"] for event in events if event["kind"] == "snapshot")
    body = {"model": name, "prompt": "the cat", "max_new_tokens": 4, "seed": 1}
    with visitor.stream("POST", "/look/write", json=body) as stream:
        pointers = [json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: ")]
    assert pointers[-1]["state"] == "done" and pointers[-1]["tokens"] == 11
    assert visitor.get(f"/look/{pointers[-1]['run']}/rows").status_code == 200
    text = {"model": name, "step": 0, "ids": [1, 2, 3], "n_prompt": 1}
    assert visitor.post("/look/snapshot", json=text).json()["state"] == "snapshot"
    assert visitor.post("/learn/block", json={"sentence": "the cat", "model": name}).status_code == 200


def test_other_visitors_cannot_find_the_model(
    quick: Server, trained: tuple[Visitor, list[dict[str, Any]], str], stranger: Visitor
) -> None:
    visitor, _, name = trained
    opening = visitor.get(f"/look/opening/{name}").json()
    snapshot = visitor.post("/look/snapshot", json={"model": name, "step": 0, "ids": [1, 2], "n_prompt": 1}).json()
    text = {"ids": [1, 2], "n_prompt": 1}
    for asking in (stranger, Visitor(quick)):
        assert [each["name"] for each in asking.get("/look/landing").json()["models"]] == ["tiny"]
        assert not asking.get("/look/landing").json()["training"]
        for path in ("events", "model.zip"):
            assert asking.get(f"/train/{path}").status_code == 404
        for path in ("stop", "here", "forget"):
            assert asking.post(f"/train/{path}").status_code == 404
        assert asking.get(f"/look/opening/{name}").status_code == 404
        assert asking.get(f"/look/steps/{name}").json()["steps"] == []
        assert asking.post("/look/write", json={"model": name, "prompt": "a"}).status_code == 400
        assert asking.post("/look/snapshot", json={"model": name, "step": 0, **text}).status_code == 400
        for pointer in (opening, snapshot):
            assert asking.get(f"/look/{pointer['run']}/rows").status_code == 404
            again = {"sha256": pointer["sha256"], **text}
            assert asking.post("/look/again/rows", json=again).status_code == 410
            assert asking.get(f"/look/vocabulary/{pointer['sha256']}.json").status_code == 410
            link = {"model": name, "sha256": pointer["sha256"][:16], "ids": "AQI", "prompt": "1"}
            assert asking.get("/look/landing", params=link).json()["pointer"]["model"] == "tiny"


def test_api_does_not_list_private_models(
    trained: tuple[Visitor, list[dict[str, Any]], str],
) -> None:
    visitor, _, name = trained
    assert [each["id"] for each in visitor.get("/v1/models").json()["data"]] == ["tiny"]
    assert visitor.get(f"/v1/models/{name}").status_code == 404
    for path in ("completions", "attention"):
        assert visitor.post(f"/v1/{path}", json={"model": name, "prompt": "a"}).status_code == 404
    assert visitor.get("/health").json()["models"] == ["tiny"]
    metrics = visitor.get("/metrics").text
    assert name not in metrics and 'headscope_trainings{state="training"} 0.0' in metrics


def test_reload_replays_all_events(
    trained: tuple[Visitor, list[dict[str, Any]], str],
) -> None:
    visitor, events, name = trained
    again = list(visitor.events())
    assert visitor.get("/train/state").json()["mine"] == {"name": name, "state": "done", "size": "small"}
    # Later followers get only the newest of the events that replace each other.
    kept = [event for event in events if event["kind"] != "step"]
    assert [event for event in again if event["kind"] != "step"] == kept
    assert again[-1]["state"] == "done"


def test_forgetting_removes_the_model_and_its_texts(quick: Server, nothing_is_learned: None) -> None:
    visitor = Visitor(quick)
    name = visitor.train().json()["name"]
    assert list(visitor.events())[-1]["state"] == "done"
    opening = visitor.get(f"/look/opening/{name}").json()
    assert visitor.get(f"/look/{opening['run']}/rows").status_code == 200
    assert visitor.post("/train/forget").status_code == 204
    assert visitor.get("/train/events").status_code == 404
    assert visitor.get(f"/look/opening/{name}").status_code == 404
    assert visitor.get(f"/look/{opening['run']}/rows").status_code == 404
    assert all(name not in run.loaded.name for run in quick.services.runs.cache.values())
    assert all(loaded.name != name for loaded in quick.services.engines.engines)


@pytest.mark.slow
def test_a_llama_learns_and_answers_with_its_token(quick: Server, tmp_path: Path) -> None:
    visitor = Visitor(quick)
    name = visitor.train(size="small&arch=llama").json()["name"]
    events = list(visitor.events())
    (end,) = (event for event in events if event["kind"] == "end")
    losses = [event["validation_loss"] for event in events if event["kind"] == "loss"]
    assert events[-1]["state"] == "done" and end["loss"] < losses[0]
    zipfile.ZipFile(io.BytesIO(visitor.get("/train/model.zip").content)).extractall(tmp_path)
    loaded = model.load(tmp_path / name, dtype="float32")
    assert (loaded.model_type, loaded.config.rotary is not None, loaded.config.norm) == ("llama", True, "RMSNorm")
    pointer = visitor.get("/look/landing", params={"model": name}).json()["pointer"]
    assert pointer["model"] == name and pointer["rotary"] and not pointer["qk_norm"]
    headers = {TOKEN_HEADER: events[-1]["token"]}
    body = {"model": name, "prompt": "the cat", "max_tokens": 5, "temperature": 0}
    answer = httpx.post(f"{quick.url}/v1/completions", json=body, headers=headers, timeout=60).json()
    steps = loaded.generate("the cat", 5, temperature=0)
    assert answer["choices"][0]["text"] == "".join(step.text for step in steps)


@pytest.mark.slow
def test_served_model_can_write_the_training_text(quick: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("web.training.training_request.TRAINING_CHARACTERS", 1_000)
    visitor = Visitor(quick)
    assert visitor.post("/train/written", json={"size": "small", "model": "nobody"}).status_code == 400
    assert visitor.post("/train/written", json={"size": "small", "model": "tiny"}).status_code == 200
    events = list(visitor.events())
    assert events[-1]["state"] == "done"
    writing = [event for event in events if event["kind"] == "writing"][-1]
    assert writing["written"] == writing["of"] == 1_000
    assert set(writing["text"]) <= set(quick.served.models["tiny"].tokenizer.ids)
    (start,) = (event for event in events if event["kind"] == "start")
    assert start["train_tokens"] + start["validation_tokens"] == 1_000


def test_train_endpoint_over_gradio(quick: Server, nothing_is_learned: None) -> None:
    from gradio_client import Client

    job = Client(quick.url, verbose=False).submit(TRAINING_TEXT, "small", api_name="/train")
    told = list(job)
    assert told[-1]["state"] == "done" and 0 < told[-1]["loss"] < 3
    archive = httpx.get(f"{quick.url}/{told[-1]['download']}", headers={"Cookie": told[-1]["cookie"]})
    assert zipfile.ZipFile(io.BytesIO(archive.content)).testzip() is None
    assert httpx.get(f"{quick.url}/{told[-1]['download']}").status_code == 404
