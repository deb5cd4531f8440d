"""A lent model: its link opens writing and looking, and nothing else, until it is withdrawn or its hour ends."""

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from helpers.server import Server
from helpers.training.visitors import Visitor
from web.serving.served_models import TOKEN_HEADER
from web.training import trainings
from web.training.visitor_cookie import cookie_name

COOKIE = cookie_name({"scheme": "http", "headers": []}, "loan")
STEP = 5  # of a snapshot that the model is given


@pytest.fixture
def owner(quick: Server) -> Iterator[Visitor]:
    visitor = Visitor(quick)
    assert visitor.train().status_code == 200
    assert list(visitor.events())[-1]["state"] == "done"
    yield visitor
    visitor.post("/train/forget")


@pytest.fixture
def name(owner: Visitor) -> str:
    found: str = owner.get("/train/state").json()["mine"]["name"]
    return found


@pytest.fixture
def loan(owner: Visitor) -> str:
    found: str = owner.post("/train/lend").json()["loan"]
    return found


@pytest.fixture
def pupil(quick: Server, loan: str, name: str) -> Visitor:
    visitor = Visitor(quick)
    assert visitor.post("/train/borrow", json={"loan": loan}).json() == {"name": name}
    return visitor


def models(visitor: httpx.Client) -> list[str]:
    return [each["name"] for each in visitor.get("/look/landing").json()["models"]]


def written(visitor: Visitor, name: str) -> dict[str, Any]:
    """The last pointer of a text that a visitor writes."""
    body = {"model": name, "prompt": "the cat", "max_new_tokens": 3, "seed": 1}
    with visitor.stream("POST", "/look/write", json=body) as stream:
        lines = [line[6:] for line in stream.iter_lines() if line.startswith("data: ")]
    pointer: dict[str, Any] = json.loads(lines[-1])
    return pointer


def test_the_link_opens_writing_and_looking(pupil: Visitor, name: str) -> None:
    landing = pupil.get("/look/landing", params={"model": name}).json()
    assert [each["name"] for each in landing["models"]] == ["tiny", name]
    assert landing["pointer"]["model"] == name and not landing["training"]
    assert landing["models"][1]["about"].endswith("It may repeat passages of its text.")
    pointer = written(pupil, name)
    assert (pointer["state"], pointer["tokens"]) == ("done", 10)
    assert pupil.get(f"/look/{pointer['run']}/rows").status_code == 200
    asked = {"model": name, "prompt": "the cat"}
    assert pupil.post("/v1/lens/logit-lens", json=asked).status_code == 200
    assert pupil.post("/learn/block", json={"sentence": "the cat", "model": name}).status_code == 200
    notebook = pupil.post("/learn/notebooks/whole-model.ipynb", json={"sentence": "the cat", "model": name})
    assert notebook.status_code == 200 and f"checkpoints/{name}" in notebook.text


def test_neither_text_nor_download_nor_the_owner_s_actions_are_opened(
    owner: Visitor, pupil: Visitor, name: str
) -> None:
    for path in ("events", "model.zip"):
        assert pupil.get(f"/train/{path}").status_code == 404
    for path in ("stop", "here", "forget", "lend", "withdraw"):
        assert pupil.post(f"/train/{path}").status_code == 404
    assert pupil.get("/train/state").json()["mine"] is None
    assert name in models(pupil) and name in models(owner)


def test_nothing_of_the_training_is_shown(quick: Server, owner: Visitor, pupil: Visitor, name: str) -> None:
    folder = quick.served.private.by_visitor[owner_id(owner)].folder
    (folder / "steps").mkdir(exist_ok=True)
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "steps" / f"{STEP:06d}.safetensors").write_bytes(weights[:-4] + b"abcd")
    history = [{"step": STEP, "validation_loss": 1.25}]
    (folder / "training.json").write_text(
        json.dumps({"history": history, "heads": [], "best_step": STEP, "best_validation_loss": 1.25})
    )
    (folder / "README.md").write_text("## Data\n\nA secret text.\n")
    mine, lent = (visitor.get(f"/look/steps/{name}").json() for visitor in (owner, pupil))
    assert mine["history"] == history and mine["steps"] == [STEP]
    assert lent == {"steps": [], "on_disk": []}
    assert "secret text" in owner.get("/look/landing").text and "secret text" not in pupil.get("/look/landing").text
    lesson = {"sentence": "the cat", "model": name}
    stories = [each.post("/learn/whole-model", json=lesson).json()["story"]["model"] for each in (owner, pupil)]
    assert stories == [1.25, None]
    # Nor the weights after an earlier step, even once the owner has opened them.
    text = {"ids": [1, 2], "n_prompt": 1}
    snapshot = owner.post("/look/snapshot", json={"model": name, "step": STEP, **text}).json()
    assert pupil.post("/look/snapshot", json={"model": name, "step": STEP, **text}).status_code == 400
    assert pupil.post("/look/again/rows", json={"sha256": snapshot["sha256"], **text}).status_code == 410
    assert pupil.get(f"/look/{snapshot['run']}/rows").status_code == 404
    assert owner.get(f"/look/{snapshot['run']}/rows").status_code == 200
    asked = {"model": f"{name}@{STEP}", "prompt": "the cat"}
    assert pupil.post("/v1/lens/logit-lens", json=asked).status_code in (400, 404)


def owner_id(owner: Visitor) -> str:
    return str(owner.cookies[cookie_name({"scheme": "http", "headers": []})])


def test_programs_cannot_use_the_loan(quick: Server, pupil: Visitor, loan: str, name: str) -> None:
    asked = {"model": name, "prompt": "the cat"}
    for path, more in (("completions", {}), ("attention", {}), ("activations", {"sites": ["q"]})):
        assert pupil.post(f"/v1/{path}", json=asked | more).status_code == 404
    assert pupil.post("/tokenize", json=asked).status_code == 404
    assert [each["id"] for each in pupil.get("/v1/models").json()["data"]] == ["tiny"]
    assert httpx.get(f"{quick.url}/v1/models", headers={TOKEN_HEADER: loan}).status_code == 401
    # Nor is it the owner's id.
    stranger = Visitor(quick)
    stranger.cookies.set(cookie_name({"scheme": "http", "headers": []}), loan)
    assert stranger.get("/train/model.zip").status_code == 404 and models(stranger) == ["tiny"]


def test_only_the_whole_secret_of_the_loan_opens_it(quick: Server, owner: Visitor, loan: str) -> None:
    token = list(owner.events())[-2]["token"]
    assert len(loan) == 32 and len({loan, token, owner_id(owner)}) == 3
    for given in ("", loan[:-1], f"{loan}x", loan.swapcase(), "x" * 32, token, owner_id(owner), "é"):
        stranger = Visitor(quick)
        refused = stranger.post("/train/borrow", json={"loan": given})
        assert refused.status_code == 404 and refused.json()["detail"].startswith("This link lends no model")
        assert not stranger.cookies
        if given.isascii():
            stranger.cookies.set(COOKIE, given)
            assert models(stranger) == ["tiny"]
    for body in ({}, {"loan": None}, {"loan": 5}, {"loan": [loan]}):
        assert Visitor(quick).post("/train/borrow", json=body).status_code in (400, 422)


def test_a_model_is_lent_only_by_its_owner(quick: Server, owner: Visitor, name: str) -> None:
    assert Visitor(quick).post("/train/lend").status_code == 404
    assert not any(each.loan for each in quick.served.private.by_visitor.values())
    assert owner.get("/look/steps/" + name).status_code == 200
    stranger = Visitor(quick)
    stranger.cookies.set(COOKIE, "")
    assert models(stranger) == ["tiny"]


def test_a_loan_opens_no_other_model(quick: Server, pupil: Visitor, name: str) -> None:
    other = Visitor(quick)
    other.train()
    theirs = list(other.events())[-1]["name"]
    try:
        assert models(pupil) == ["tiny", name]
        assert pupil.get(f"/look/opening/{theirs}").status_code == 404
        assert pupil.post("/look/write", json={"model": theirs, "prompt": "a"}).status_code == 400
        assert models(other) == ["tiny", theirs]
    finally:
        other.post("/train/forget")


def test_a_withdrawn_loan_opens_nothing(owner: Visitor, pupil: Visitor, loan: str, name: str) -> None:
    pointer = written(pupil, name)
    lent = owner.post("/train/lend").json()
    assert lent["loan"] == loan  # lent twice, it has the same link
    assert list(owner.events())[-1] == {"kind": "loan", **lent}
    assert owner.post("/train/withdraw").status_code == 204
    assert list(owner.events())[-1] == {"kind": "loan", "loan": "", "until": 0}
    assert models(pupil) == ["tiny"] and models(owner) == ["tiny", name]
    assert pupil.get(f"/look/{pointer['run']}/rows").status_code == 404
    refused = pupil.post("/look/write", json={"model": name, "prompt": "a"})
    assert refused.status_code == 400 and "whoever lent it has ended the loan" in refused.text
    assert pupil.post("/train/borrow", json={"loan": loan}).status_code == 404
    # The next link is another one.
    assert owner.post("/train/lend").json()["loan"] != loan and models(pupil) == ["tiny"]


def test_the_link_says_when_the_model_is_deleted(quick: Server, owner: Visitor) -> None:
    minutes = quick.served.settings.limits.max_trained_minutes
    before = time.time()
    lent = owner.post("/train/lend").json()
    assert 0 < lent["until"] - before <= 60 * minutes + 1
    pupil = Visitor(quick)
    pupil.post("/train/borrow", json={"loan": lent["loan"]})
    told = [[each["until"] for each in visitor.get("/look/landing").json()["models"]] for visitor in (pupil, owner)]
    assert told == [[0, lent["until"]], [0, 0]]


def test_a_lent_model_is_kept_until_its_hour_ends(
    quick: Server, owner: Visitor, pupil: Visitor, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (table,) = (each.__self__ for each in quick.services.closers if isinstance(each.__self__, trainings.Trainings))
    training = table.by_visitor[owner_id(owner)]
    hour = training.ended_at + 60 * table.limits.max_trained_minutes
    assert table.to_forget(hour - 1) == []
    assert table.to_forget(hour + 1) == [training.visitor]
    owner.post("/train/withdraw")
    assert table.to_forget(training.seen_at + trainings.KEPT_SECONDS + 1) == [training.visitor]
    owner.post("/train/lend")
    monkeypatch.setattr(training, "ended_at", training.ended_at - 60 * table.limits.max_trained_minutes - 1)
    table.forget(training.visitor)
    assert models(pupil) == ["tiny"]


def test_nothing_is_lent_before_it_is_trained(quick: Server) -> None:
    visitor = Visitor(quick)
    visitor.train(size="large")
    try:
        assert visitor.post("/train/lend").status_code == 404
    finally:
        visitor.post("/train/forget")
