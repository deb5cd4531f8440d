"""Trainings of many visitors at few addresses, slow uploads, and a full disk."""

import errno
import http.client
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from helpers.server import Server
from helpers.siege.watch import until
from helpers.training import TRAINING_TEXT
from helpers.training.visitors import UPLOAD, Visitor, quick_server
from web.settings import Limits
from web.training.trainings import DISK_FULL, GAVE_WAY

TEXT = TRAINING_TEXT[:2_000]
pytestmark = pytest.mark.usefixtures("nothing_is_learned")

HERE, THERE, ELSEWHERE = "192.0.2.1", "192.0.2.2", "192.0.2.3"


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder for the files of trainings."""
    return tmp_path_factory.mktemp("disk")


@pytest.fixture(scope="module")
def server(checkpoints: Path, disk: Path) -> Iterator[Server]:
    """Trains one GPT at a time and lets three wait; behind a proxy, so that a visitor's address can be chosen."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tempfile.tempdir", str(disk))
        patched.setattr("web.training.trainings.LEAVING_SECONDS", 600)
        yield from quick_server(checkpoints, limits=Limits(max_waiting_trainings=3), trusted_proxies=1)


@pytest.fixture
def visitors(server: Server) -> Iterator[Any]:
    """Makes a visitor at an address; their trainings are forgotten at the end, and their processes are over."""
    made = []

    def visitor_at(address: str) -> Visitor:
        made.append(Visitor(server))
        made[-1].headers["X-Forwarded-For"] = address
        return made[-1]

    yield visitor_at
    for visitor in reversed(made):
        visitor.post("/train/forget")
    registry = server.services.metrics.registry
    until(server, lambda: registry.get_sample_value("headscope_trainings", {"state": "training"}) == 0)


@pytest.mark.parametrize("address", [HERE, "2001:db8:1:2:{0}::{0}"])
def test_many_cookies_of_one_client_do_not_keep_others_out(visitors: Any, address: str) -> None:
    many = [visitors(address.format(i)) for i in range(5)]
    assert [visitor.train(TEXT, size="large").status_code for visitor in many] == [200, 200, 200, 200, 429]
    other = visitors(THERE)
    assert other.train(TEXT, size="large").status_code == 200
    # The newest training of the address with most leaves the queue, and the other one comes before the rest.
    assert many[3].watch_until("state", state="failed")["why"] == GAVE_WAY
    assert other.watch_until("state")["place"] == 1
    assert [visitor.watch_until("state", state="waiting")["place"] for visitor in many[1:3]] == [2, 3]
    many[0].post("/train/forget")
    assert other.watch_until("state", state="training")
    # With one more, this address would have as many as the first, so none gives way to it.
    assert visitors(ELSEWHERE).train(TEXT).status_code == 200
    assert visitors(THERE).train(TEXT).status_code == 429


def test_models_of_one_address_do_not_evict_those_of_others(visitors: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("web.training.trainings.MAX_KEPT_TRAININGS", 2)
    good = visitors(THERE)
    good.train(TEXT)
    good.watch_until("state", state="done")
    for _ in range(3):
        visitor = visitors(HERE)
        visitor.train(TEXT)
        visitor.watch_until("state", state="done")
    assert good.get("/train/state").json()["mine"]["state"] == "done"


def begin_upload(server: Server, address: str) -> http.client.HTTPConnection:
    """A connection that has sent the head of an upload and a little of its text."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    connection.putrequest("POST", f"{UPLOAD}small")
    connection.putheader("Content-Length", "2000")
    connection.putheader("X-Forwarded-For", address)
    connection.endheaders(b"slow ")
    return connection


def test_slow_uploads_time_out_and_keep_nobody_out(
    server: Server, visitors: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("web.training.routes.UPLOAD_GRACE_SECONDS", 2)
    slow = [begin_upload(server, address) for address in (HERE, THERE) for _ in range(8)]
    assert [visitors(address).train(TEXT).status_code for address in (HERE, ELSEWHERE)] == [200, 200]
    assert {connection.getresponse().status for connection in slow} == {408}
    for connection in slow:
        connection.close()


def test_full_disk_is_reported_in_one_sentence(disk: Path, visitors: Any, monkeypatch: Any) -> None:
    visitor = visitors(HERE)
    before = set(disk.glob("*/*"))  # of a process that is being killed
    with monkeypatch.context() as full:
        full.setattr(Path, "write_text", no_space)
        answer = visitor.train(TEXT)
    assert (answer.status_code, answer.json()["detail"]) == (507, DISK_FULL)
    assert set(disk.glob("*/*")) <= before
    for reports in (no_space, no_space_for_the_model):
        with monkeypatch.context() as full:
            full.setattr("web.training.process.TrainingProcess.reports", reports)
            visitor.train(TEXT)
            assert visitor.watch_until("state", state="failed")["why"] == DISK_FULL
    assert set(disk.glob("*/*")) <= before
    assert visitor.train(TEXT).status_code == 200  # and there is room again
    visitor.watch_until("state", state="done")
    monkeypatch.setattr("shutil.make_archive", no_space)
    answer = visitor.get("/train/model.zip")
    assert (answer.status_code, answer.json()["detail"]) == (507, DISK_FULL)


def test_nothing_gives_way_to_a_training_for_which_the_disk_has_no_room(visitors: Any, monkeypatch: Any) -> None:
    done = visitors(HERE)
    done.train(TEXT)
    done.watch_until("state", state="done")
    many = [visitors(THERE) for _ in range(4)]
    assert [visitor.train(TEXT, size="large").status_code for visitor in many] == [200] * 4
    with monkeypatch.context() as full:
        full.setattr(Path, "write_text", no_space)
        assert done.train(TEXT).status_code == 507
    assert [visitor.watch_until("state", state="waiting")["place"] for visitor in many[1:]] == [1, 2, 3]
    assert done.get("/train/state").json()["mine"]["state"] == "done"
    assert done.get("/train/model.zip").status_code == 200
    assert done.train(TEXT).status_code == 200  # and now it takes their place
    assert many[3].watch_until("state", state="failed")["why"] == GAVE_WAY


def no_space(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


async def no_space_for_the_model(*_: Any) -> Any:
    """What a process reports that cannot store its model."""
    yield {"kind": "error", "message": "The model could not be stored (I/O error: No space left on device)."}
