"""The roles of a checkpoint's heads: measured once, stored under the hash of its weights, and validated when read."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from helpers.models import tiny_model
from model import InputError, LoadedModel
from model.lens.head_roles import LOOKS, describe_roles, head_roles, role_scores
from model.lens.progress import ignore
from web.ask import head_roles as roles_module
from web.ask.head_roles import measure_in_turn, measure_roles, prepare_roles, while_idle
from web.ask.service import AnswerService
from web.prometheus import Metrics
from web.settings import Limits, default_cache


@pytest.fixture
def loaded() -> LoadedModel:
    loaded = tiny_model()
    loaded.sha256 = "0123456789abcdef"
    return loaded


@pytest.fixture(autouse=True)
def own_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """The background thread runs in the test's own, so that it does not slow down later tests."""
    monkeypatch.setattr(roles_module, "lower_priority", lambda: None)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the models that were measured."""
    measured: list[str] = []

    def count(loaded: LoadedModel, *args: Any, **kwargs: Any) -> Any:
        measured.append(loaded.name)
        return head_roles(loaded, *args, **kwargs)

    monkeypatch.setattr(roles_module, "head_roles", count)
    return measured


def questions(cache: Path | None) -> AnswerService:
    return AnswerService(Limits(), Metrics(), cache)


def test_roles_are_measured_once_per_weights(loaded: LoadedModel, counted: list[str], tmp_path: Path) -> None:
    first = measure_roles(questions(tmp_path / "new"), loaded)
    loaded.name = "the same under another name"
    assert measure_roles(questions(tmp_path / "new"), loaded) == first
    assert counted == ["tiny"]
    expected = role_scores(loaded)
    assert torch.allclose(torch.tensor(first["scores"]["self"]), expected.scores["self"])
    (file,) = (tmp_path / "new").iterdir()
    assert loaded.sha256 in file.name and json.loads(file.read_text()) == first


def test_roles_are_cached_per_weights_and_precision(loaded: LoadedModel, counted: list[str], tmp_path: Path) -> None:
    measure_roles(questions(tmp_path), loaded)
    loaded.sha256 = "fedcba9876543210"
    measure_roles(questions(tmp_path), loaded)
    loaded.gpt.to(torch.bfloat16)
    measure_roles(questions(tmp_path), loaded)
    assert len(counted) == 3 and len(list(tmp_path.iterdir())) == 3
    loaded.sha256 = ""  # never saved, so there is no hash to store it under
    measure_roles(questions(tmp_path), loaded)
    assert len(counted) == 4 and len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b'{"scores": 1}', b"\xff", b'{"uniform": NaN, "scores": {}}', b'{"scores": {"self": [[1]]}}'],
)
def test_invalid_cache_file_is_measured_again(
    loaded: LoadedModel, counted: list[str], tmp_path: Path, content: bytes
) -> None:
    first = measure_roles(questions(tmp_path), loaded)
    (file,) = tmp_path.iterdir()
    file.write_bytes(content)
    assert measure_roles(questions(tmp_path), loaded) == first
    assert len(counted) == 2
    assert json.loads(file.read_text()) == first  # repaired


def test_unusable_cache_folder_is_ignored(loaded: LoadedModel, counted: list[str], tmp_path: Path) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("")
    for folder in (occupied, occupied / "below", None):
        measure_roles(questions(folder), loaded)
    assert len(counted) == 3


def test_scores_of_every_head_with_the_uniform_baseline(loaded: LoadedModel) -> None:
    measured = measure_roles(questions(None), loaded)
    measured["scores"]["induction"][1][0] = 0.8
    heads = describe_roles(measured)["heads"]
    assert [len(row) for row in heads] == [2, 2]
    assert heads[1][0]["label"] == "induction" and heads[1][0]["scores"]["induction"] == 0.8
    for head in (head for row in heads for head in row):
        assert set(head["scores"]) == set(head["baseline"]) == {*LOOKS, "copying", "entropy"}
        assert set(head["errors"]) == set(LOOKS) and head["errors"]["self"] > 0
        assert head["baseline"]["self"] == measured["uniform"] and head["baseline"]["copying"] == 0.5


def test_unfocused_heads_may_copy(loaded: LoadedModel) -> None:
    measured = measure_roles(questions(None), loaded)
    for role in LOOKS:
        measured["scores"][role] = [[0.1, 0.1], [0.1, 0.1]]
    measured["copying"] = [[0.89, 0.9], [0.5, 0.95]]
    measured["scores"]["induction"][1][1] = 0.8
    labels = [[head["label"] for head in row] for row in describe_roles(measured)["heads"]]
    assert labels == [["no clear role", "copying"], ["no clear role", "induction"]]


def test_too_short_a_context_is_refused(loaded: LoadedModel, tmp_path: Path) -> None:
    short = tiny_model(context_length=3)
    with pytest.raises(InputError, match="context_length of at least 4"):
        measure_roles(questions(None), short)
    measure_in_turn(questions(tmp_path), [short, loaded], ignore)  # continues with the next
    assert len(list(tmp_path.iterdir())) == 1


def test_background_measurement_yields_to_writing_and_ends_with_the_server(
    loaded: LoadedModel, counted: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roles_module, "IDLE_SECONDS", 0)
    asked = questions(tmp_path)
    looks = iter([True, True, False])
    measure_in_turn(asked, [loaded], while_idle(asked, lambda: next(looks, False)))
    assert counted == ["tiny"]
    asked.close()
    loaded.sha256 = "fedcba9876543210"
    measure_in_turn(asked, [loaded], while_idle(asked, lambda: True))
    assert counted == ["tiny"]
    prepare_roles(questions(None), [loaded], lambda: False)  # not stored, hence measured only on demand
    assert counted == ["tiny"]


def test_default_cache_is_in_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    assert default_cache({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "headscope"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_cache({}) == tmp_path / ".cache" / "headscope"
    monkeypatch.setattr("sys.platform", "darwin")
    assert default_cache({}) == tmp_path / "Library" / "Caches" / "headscope"
    monkeypatch.setattr("sys.platform", "win32")
    assert default_cache({"LOCALAPPDATA": str(tmp_path)}) == tmp_path / "headscope"

    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nowhere)
    assert default_cache({}) is None
