"""The events that followers of a training get, whenever they join and however slow they are."""

import asyncio
from pathlib import Path
from typing import Any

from web.training.training_request import SIZES, TrainingRequest
from web.training.trainings import Training


async def told(training: Training) -> list[dict[str, Any] | None]:
    return [event async for event in training.follow()]


def test_every_state_is_told_but_only_the_newest_place_in_line_and_step(tmp_path: Path) -> None:
    async def follow() -> None:
        request = TrainingRequest(SIZES[0], text="abc", n_characters=3)
        training = Training("visitor", "your-gpt", request, tmp_path, "192.0.2.1")
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

    asyncio.run(follow())
