"""A training on the Hub, served: its steps are opened on demand, and the scores of its heads computed and kept."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from helpers.hub import StandInHub
from helpers.models import tiny_model
from model import InputError
from model.config import RotaryConfig
from model.ladder import read_twice
from model.lens.head_roles import role_scores
from web.ask.score_steps import spread
from web.learn.induction import InductionRequest, induction
from web.services import Services, make_services
from web.serving.served_models import name_sources
from web.settings import Limits, Settings

STEPS = [0, 2, 16, 1000]
NAME = "someone/gpt"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandInHub:
    hub = StandInHub(tmp_path, monkeypatch)
    for step in STEPS:
        tiny_model(seed=step).save(hub.remote / f"step{step}")
    return hub


class Server:
    """Starts servers that share a cache, and waits until the background thread of each has scored all it was asked."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self.started: list[Services] = []

    def start(self, pattern: str = "step*", **changes: Any) -> Services:
        chosen: dict[str, Any] = {"checkpoints": (f"{NAME}@{pattern}",), "kernels": False, "device": "cpu"}
        limits = Limits(max_scored_steps=2)
        services = make_services(Settings(**(chosen | {"cache": self.cache, "limits": limits} | changes)))
        services.load()
        self.started.append(services)
        return services

    def wait(self, services: Services) -> None:
        scores = services.snapshots.scores
        with scores.changed:
            assert scores.changed.wait_for(lambda: not scores.unscored, timeout=60)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "own")
    yield server
    for services in server.started:
        services.close()


def steps_with_scores(services: Services) -> list[int]:
    return [row["step"] for row in services.snapshots.training(NAME)["heads"]]


def test_the_steps_of_a_training_are_served(hub: StandInHub, server: Server) -> None:
    services = server.start()
    assert services.served.failures == {} and list(services.served.models) == [NAME]
    last = tiny_model(seed=1000)
    assert torch.equal(services.served.models[NAME].gpt.wte.weight, last.gpt.wte.weight)
    assert services.snapshots.steps(NAME) == STEPS
    assert [path.name for path in hub.cache.glob("*/refs/*")] == ["step1000"]  # where nothing is deleted
    for step in (16, 0):
        loaded = services.snapshots.find(f"{NAME}@{step}")
        assert loaded.name == f"{NAME}@{step}"
        assert torch.equal(loaded.trace("To be").logits, tiny_model(seed=step).trace("To be").logits)
    with pytest.raises(InputError, match="There is no snapshot of step 7. Available steps: 0, 2, 16, 1000"):
        services.snapshots.get(NAME, 7)


def test_heads_are_scored_in_the_background_and_once(hub: StandInHub, server: Server) -> None:
    """The oracle scores the models that the stand-in has."""
    services = server.start()
    server.wait(services)
    training = services.snapshots.training(NAME)
    assert [row["step"] for row in training["heads"]] == [0, 1000]
    assert (training["kept"], training["scoring"], training["history"]) == (1000, False, [])
    for row in training["heads"]:
        expected = role_scores(tiny_model(seed=row["step"])).rounded()
        for role in ("induction", "previous_token"):
            torch.testing.assert_close(torch.tensor(row[role]), torch.tensor(expected[role]), atol=2e-4, rtol=0)
    services.snapshots.get(NAME, 16)
    server.wait(services)
    assert steps_with_scores(services) == [0, 16, 1000] and "step2" not in {name for name, _ in hub.fetched}

    hub.is_online = False
    again = server.start()
    assert again.snapshots.steps(NAME) == [0, 16, 1000]
    assert again.snapshots.training(NAME) == services.snapshots.training(NAME)


def test_a_lesson_reads_only_steps_that_are_on_disk(hub: StandInHub, server: Server) -> None:
    """One visitor's request must not fetch a whole training."""
    services = server.start(limits=Limits(max_scored_steps=1))
    services.snapshots.get(NAME, 16)
    server.wait(services)
    fetched = list(hub.fetched)
    lesson = induction(services.snapshots, InductionRequest(sentence="To be, or not"))
    assert (lesson["steps"], lesson["step"]) == ([16, 1000], 1000)
    with pytest.raises(InputError, match=r"There is no snapshot of step 2. Available steps: 16, 1000$"):
        induction(services.snapshots, InductionRequest(sentence="To be, or not", step=2))
    assert hub.fetched == fetched and {name for name, _ in fetched} == {"step16", "step1000"}


@pytest.mark.parametrize(
    ("config", "asked", "said"),
    [
        ({"rotary": RotaryConfig(n_dim=4)}, {}, "a model of another family"),
        ({}, {"muted": (9, 0)}, "has no head 0 in layer 9"),
        ({}, {"sentence": "To"}, "at least 3 tokens"),
    ],
)
def test_a_lesson_is_refused_before_any_step_is_opened(
    hub: StandInHub,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    config: dict[str, Any],
    asked: dict[str, Any],
    said: str,
) -> None:
    services = server.start()
    server.wait(services)
    loaded = services.served.models[NAME]
    monkeypatch.setattr(loaded.gpt, "config", replace(loaded.config, **config))
    monkeypatch.setattr(services.snapshots, "get", lambda *_: pytest.fail("a step was opened"))
    with pytest.raises(InputError, match=said):
        induction(services.snapshots, InductionRequest(**({"sentence": "To be, or not"} | asked)))


def test_more_steps_than_memory_keeps(hub: StandInHub, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step is read once, and shown with its own numbers."""
    monkeypatch.setattr("web.serving.snapshots.MAX_SNAPSHOT_BYTES", 1)
    services = server.start(limits=Limits(max_scored_steps=len(STEPS)))
    server.wait(services)
    assert services.snapshots.cache.max_bytes == 1
    for step in STEPS:
        lesson: Any = induction(services.snapshots, InductionRequest(sentence="To be, or not", step=step))
        assert lesson["steps"] == STEPS and len(lesson["curve"]) == len(STEPS)
        read = read_twice(tiny_model(seed=step).gpt, lesson["ids"][: lesson["n"]])
        assert lesson["read"]["losses"] == pytest.approx(read.losses.tolist(), abs=1e-5)
        assert lesson["curve"][STEPS.index(step)]["second_loss"] == pytest.approx(read.second_loss, abs=1e-5)


def test_a_step_that_cannot_be_downloaded_gives_one_sentence(hub: StandInHub, server: Server) -> None:
    services = server.start()
    server.wait(services)
    hub.is_online = False
    reason = "someone/gpt@step2: the Hub cannot be reached, and the repository is not in its cache"
    with pytest.raises(InputError) as error:
        services.snapshots.get(NAME, 2)
    assert str(error.value) == f"The snapshot of step 2 cannot be loaded: {reason}"
    services.snapshots.scores.request(NAME, 2)
    server.wait(services)  # skipped
    services.snapshots.get(NAME, 0)
    assert steps_with_scores(services) == [0, 1000]


@pytest.mark.parametrize(
    ("pattern", "changes", "reason"),
    [
        ("step3*", {}, "someone/gpt@step3*: the repository has no training step 'step3*'"),
        ("step*", {"cache": None}, "Training steps need a folder to be kept in: --cache"),
    ],
)
def test_a_training_that_cannot_be_served(
    hub: StandInHub, server: Server, pattern: str, changes: dict[str, Any], reason: str
) -> None:
    assert server.start(pattern, **changes).served.failures == {NAME: reason}


def test_damaged_scores_are_computed_again(hub: StandInHub, server: Server) -> None:
    first = server.start()
    server.wait(first)
    expected = first.snapshots.training(NAME)
    (file,) = server.cache.glob("steps-*.json")
    for damaged in ("{", file.read_text().replace("induction", "reduction"), file.read_text().replace("[[", "[", 1)):
        file.write_text(damaged)
        services = server.start()
        server.wait(services)
        assert services.snapshots.training(NAME) == expected


def test_background_scoring_waits_for_writing(hub: StandInHub, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, idle = threading.Event(), threading.Event()

    def is_busy() -> bool:
        looks.set()
        return not idle.is_set()

    services = make_services(
        Settings(
            checkpoints=(f"{NAME}@step*",),
            kernels=False,
            device="cpu",
            cache=server.cache,
            limits=Limits(max_scored_steps=2),
        )
    )
    monkeypatch.setattr(services.engines, "are_busy", is_busy)
    services.served.load()
    assert services.snapshots.training(NAME)["scoring"]  # although it has not begun
    monkeypatch.setattr(services.served, "load", lambda: None)
    services.load()
    server.started.append(services)
    assert looks.wait(60) and services.snapshots.training(NAME)["scoring"]
    assert {name for name, _ in hub.fetched} == {"step1000"}  # nothing is downloaded meanwhile
    idle.set()
    server.wait(services)
    assert steps_with_scores(services) == [0, 1000]


def test_only_opened_steps_are_scored_if_the_operator_says_so(hub: StandInHub, server: Server) -> None:
    services = server.start(limits=Limits(max_scored_steps=0))
    assert not services.snapshots.training(NAME)["scoring"]
    services.snapshots.find(f"{NAME}@16")
    server.wait(services)
    assert steps_with_scores(services) == [16]


def test_steps_are_spread_along_the_slider() -> None:
    steps = [0, *(2**i for i in range(10)), *range(1000, 144_000, 1000)]
    found = spread(steps, 16)
    places = sorted(steps.index(step) for step in found)
    assert len(steps) == 154 and len(places) == 16 and (places[0], places[-1]) == (0, 153)
    assert {after - before for before, after in pairwise(places)} <= {10, 11}
    assert found[0] == 143_000 and found[1:] == sorted(found[1:])
    assert spread([5], 9) == [5] and spread([1, 2], 9) == [2, 1] and sorted(spread(STEPS, 9)) == STEPS
    assert spread(STEPS, 1) == [1000] and spread(STEPS, 0) == []


def test_a_training_has_the_name_of_its_repository_unless_that_is_served_too() -> None:
    names = name_sources(["a/b@step*", "a/b@step1+step2", "c/d", "c/d@step*", "e/f@step*"])
    assert names == {
        "a/b": "a/b@step*",
        "a/b@step1+step2": "a/b@step1+step2",
        "c/d": "c/d",
        "c/d@step*": "c/d@step*",
        "e/f": "e/f@step*",
    }
    assert list(name_sources(["c/d@step*", "c/d"])) == ["c/d@step*", "c/d"]
