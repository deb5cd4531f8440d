"""The order of trainings: places in the queue, visitors who stop or leave, and values on both sides of the limits."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.server import Server
from helpers.training import TRAINING_TEXT
from helpers.training.visitors import UPLOAD, Visitor, children, quick_server

pytestmark = pytest.mark.usefixtures("nothing_is_learned")

MAX_TEXT_BYTES = 4_000
TEXT = TRAINING_TEXT[:2_000]


@pytest.fixture(scope="module")
def narrow(checkpoints: Path) -> Iterator[Server]:
    """A server that trains one GPT at a time, on short texts, and lets one more training wait."""
    from web.settings import Limits

    limits = Limits(max_waiting_trainings=1, max_training_bytes=MAX_TEXT_BYTES, max_body_bytes=1_000)
    yield from quick_server(checkpoints, limits=limits)


@pytest.fixture
def active(narrow: Server, nothing_is_learned: None) -> Iterator[Visitor]:
    """A visitor with a running training that would take long."""
    visitor = Visitor(narrow)
    assert visitor.train(TEXT, size="large").status_code == 200
    visitor.watch_until("state", state="training")
    yield visitor
    visitor.post("/train/forget")


def test_waiting_trainings_report_their_place_in_the_queue(narrow: Server, active: Visitor) -> None:
    second, third = Visitor(narrow), Visitor(narrow)
    assert second.train(TEXT).status_code == 200
    assert second.watch_until("state")["place"] == 1
    refused = third.train(TEXT)
    assert refused.status_code == 429 and "Too many" in refused.json()["detail"]
    assert int(refused.headers["retry-after"]) >= 60  # as its message says
    state = third.get("/train/state").json()
    assert (state["at_work"], state["waiting"], state["mine"]) == (1, 1, None)
    assert active.train(TEXT).status_code == 409
    assert active.post("/train/forget").status_code == 204
    assert second.watch_until("state", state="done")
    assert third.train(TEXT).status_code == 200
    third.post("/train/forget")


def test_stopped_training_keeps_its_model(active: Visitor) -> None:
    active.watch_until("step")
    assert active.post("/train/stop").status_code == 204
    *_, end, done = active.events()
    assert end["kind"] == "end" and end["stopped"] and done["state"] == "done"
    assert active.get("/look/landing", params={"model": done["name"]}).json()["pointer"]["model"] == done["name"]


def test_process_has_low_priority_and_no_secrets(checkpoints: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADSCOPE_API_KEY", "secret")
    for server in quick_server(checkpoints):
        monkeypatch.setattr("web.training.process.NICENESS", 7)
        visitor = Visitor(server)
        visitor.train(TEXT, size="large")
        visitor.watch_until("state", state="training")
        (child,) = children()
        assert child.nice == 7 and b"HEADSCOPE_API_KEY" not in child.environment()
        assert server.services.is_training.is_set()
        visitor.post("/train/forget")
        assert child.has_ended()


def test_training_ends_when_its_visitor_leaves(narrow: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    visitor = Visitor(narrow)
    visitor.train(TEXT, size="large")
    visitor.watch_until("state", state="training")  # and closes the stream
    (child,) = children()
    monkeypatch.setattr("web.training.trainings.LEAVING_SECONDS", 0.5)
    assert child.has_ended()
    assert visitor.get("/train/events").status_code == 404
    assert visitor.get("/train/state").json()["mine"] is None


def test_trained_model_expires(narrow: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    visitor = Visitor(narrow)
    name = visitor.train(TEXT).json()["name"]
    visitor.watch_until("state", state="done")
    assert visitor.post("/train/here").status_code == 204
    gone = threading.Event()
    forget = narrow.services.forget

    def forget_and_say(_: object, visitors_cookie: str) -> None:
        forget(visitors_cookie)
        if visitors_cookie == next(iter(visitor.cookies.values())):
            gone.set()

    monkeypatch.setattr(type(narrow.services), "forget", forget_and_say)
    monkeypatch.setattr("web.training.trainings.KEPT_SECONDS", 0.1)
    assert gone.wait(30)
    assert visitor.get(f"/look/opening/{name}").status_code == 404


@pytest.mark.parametrize(
    ("text", "size", "status", "words"),
    [
        (b"a" * 999, "small", 400, "999 characters; at least 1,000"),
        (b"ab" * (MAX_TEXT_BYTES // 2 + 1), "small", 413, "more than 4,000 bytes"),
        (b"\xff" * 2_000, "small", 400, "not a text in UTF-8: byte 0"),
        (b"ab" * 600, "huge", 400, "There is no size 'huge'. Available: small, large"),
        (b"ab" * 600, "small&arch=mamba", 400, "There is no architecture 'mamba'. Available: gpt2, llama"),
    ],
)
def test_unusable_training_texts_are_refused(narrow: Server, text: bytes, size: str, status: int, words: str) -> None:
    visitor = Visitor(narrow)
    answer = visitor.post(f"{UPLOAD}{size}", content=text)
    assert answer.status_code == status
    assert words in (answer.json().get("detail") or answer.json()["error"]["message"])
    assert not visitor.cookies and visitor.get("/train/state").json()["mine"] is None


def test_only_training_texts_may_exceed_the_body_limit(narrow: Server) -> None:
    visitor = Visitor(narrow)
    assert visitor.train("ab" * (MAX_TEXT_BYTES // 2)).status_code == 200
    visitor.post("/train/forget")
    assert visitor.post("/look/write", content=b"x" * 1_001).status_code == 413
    assert visitor.post("/train/written", content=b"x" * 1_001).status_code == 413


def test_sizes_beyond_the_weight_limit_are_neither_offered_nor_accepted(checkpoints: Path) -> None:
    from helpers.training.visitors import QUICK
    from web.settings import Limits

    most = QUICK.n_parameters(65)
    for server in quick_server(checkpoints, limits=Limits(max_training_weights=most)):
        visitor = Visitor(server)
        assert [size["name"] for size in visitor.get("/train/state").json()["sizes"]] == ["small", "large"]
        characters = "".join(map(chr, range(0x4E00, 0x4E00 + 66)))
        answer = visitor.train(characters * 20)
        assert answer.status_code == 400 and f"at most {most:,} are trained here" in answer.json()["detail"]
        assert visitor.train(characters[:65] * 20).status_code == 200
        visitor.post("/train/forget")


@pytest.mark.slow
def test_no_train_removes_the_routes(checkpoints: Path) -> None:
    for server in quick_server(checkpoints, train=False):
        visitor = Visitor(server)
        assert visitor.get("/train/state").status_code == 404
        assert visitor.train().status_code in (404, 405, 413)
        assert "/train" not in visitor.get("/gradio_api/info").json()["named_endpoints"]


def test_crashed_process_fails_its_training_only(narrow: Server, active: Visitor) -> None:
    (child,) = children()
    child.kill()
    failed = active.watch_until("state", state="failed")
    assert failed["why"] == "The training process ended unexpectedly."
    assert active.train(TEXT).status_code == 200
    assert active.watch_until("state", state="done")


def watched_training(server: Server) -> tuple[Visitor, Iterator[dict[str, Any]]]:
    """A visitor whose large model is being trained, and the events that follow."""
    visitor = Visitor(server)
    visitor.train(TEXT, size="large")
    events = visitor.events()
    while next(events).get("state") != "training":
        pass
    return visitor, events


@pytest.mark.slow
def test_visitors_are_told_that_the_server_ends_and_can_keep_what_was_learned(
    checkpoints: Path, nothing_is_learned: None
) -> None:
    for server in quick_server(checkpoints):
        visitor, events = watched_training(server)
        closing = threading.Thread(target=server.services.close, args=[60.0])
        closing.start()
        while next(events)["kind"] != "closing":
            pass
        assert Visitor(server).train(TEXT).status_code == 503
        assert visitor.post("/train/stop").status_code == 204
        *_, done = events
        assert done["state"] == "done"
        assert visitor.get("/train/model.zip").status_code == 200
        visitor.post("/train/forget")  # nobody is left to wait for
        closing.join(30)
        assert not closing.is_alive()


def test_a_training_that_ends_with_the_server_says_so(
    checkpoints: Path, nothing_is_learned: None, caplog: pytest.LogCaptureFixture
) -> None:
    for server in quick_server(checkpoints):
        _, events = watched_training(server)
        server.services.close()
        *_, failed = events
        assert failed["why"] == "The server was shut down, and this training ended with it."
        assert not [each for each in caplog.records if each.name.startswith("web")]
