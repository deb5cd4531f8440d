"""The events that followers of a training get, whenever they join and however slow they are; its archive."""

import asyncio
import shutil
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from helpers import run_async
from web.training.routes import archive
from web.training.training_request import SIZES, TrainingRequest
from web.training.trainings import Training


def training_in(folder: Path) -> Training:
    return Training("visitor", "your-gpt", TrainingRequest(SIZES[0], text="abc", n_characters=3), folder, "192.0.2.1")


async def told(training: Training) -> list[dict[str, Any] | None]:
    return [event async for event in training.follow()]


def test_every_state_is_told_but_only_the_newest_place_in_line_and_step(tmp_path: Path) -> None:
    async def follow() -> None:
        training = training_in(tmp_path)
        early = asyncio.create_task(told(training))
        for place in (2, 1):
            training.enter("waiting", place=place)
        training.enter("starting")
        training.enter("training")
        for step in (1, 2):
            training.tell({"kind": "step", "step": step})
        training.enter("finishing")
        training.enter("done")  # and only now do the followers run
        for events in (await early, await told(training)):
            states = [event["state"] for event in events if event and event["kind"] == "state"]
            assert states == ["waiting", "starting", "training", "finishing", "done"]
            assert events[0] == {"kind": "state", "state": "waiting", "name": "your-gpt", "place": 1}
            assert [event["step"] for event in events if event and event["kind"] == "step"] == [2]

    run_async(follow())


def test_downloads_at_the_same_time_share_one_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    training, make_archive, made = training_in(tmp_path), shutil.make_archive, list[str]()
    first_has_begun, second_has_begun = threading.Event(), threading.Event()
    training.folder.mkdir()
    (training.folder / "config.json").write_text("{}")

    def make_slowly(*arguments: Any) -> str:
        made.append(make_archive(*arguments))
        first_has_begun.set()
        second_has_begun.wait()
        return made[-1]

    def second() -> str:
        first_has_begun.wait()
        second_has_begun.set()
        return archive(training)

    monkeypatch.setattr("shutil.make_archive", make_slowly)
    with ThreadPoolExecutor(2) as threads:
        paths = [threads.submit(archive, training), threads.submit(second)]
        assert {path.result() for path in paths} == {str(tmp_path / "your-gpt.zip")}
    assert len(made) == 1 and zipfile.ZipFile(tmp_path / "your-gpt.zip").namelist()[-1] == "your-gpt/config.json"
