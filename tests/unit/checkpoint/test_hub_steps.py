"""Training steps that a Hub repository publishes as revisions: found, downloaded on demand, bounded on disk."""

import os
import pickle
from pathlib import Path

import pytest
import torch
from huggingface_hub import scan_cache_dir
from safetensors.torch import load_file

import model
from helpers.hub import StandInHub, commit_of
from helpers.models import max_difference, tiny_model
from helpers.oracles.families import reference, write
from model.checkpoint.hub_steps import HubSteps, Revision

OFFLINE = "the Hub cannot be reached, and the repository is not in its cache"
STEPS = (0, 2, 16, 1000)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandInHub:
    hub = StandInHub(tmp_path, monkeypatch)
    for step in STEPS:
        tiny_model(seed=step).save(hub.remote / f"step{step}")
    tiny_model(seed=1000).save(hub.remote / "main")
    return hub


@pytest.fixture
def steps(tmp_path: Path) -> HubSteps:
    return HubSteps(tmp_path / "steps", 10**9)


def kept(steps: HubSteps) -> set[str]:
    return {ref for repository in scan_cache_dir(steps.folder).repos for ref in repository.refs}


def open_step(steps: HubSteps, revision: Revision) -> model.LoadedModel:
    with steps.files(revision) as folder:
        return model.load(folder, device="cpu")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("step*", [0, 2, 16, 1000]),
        ("*", [0, 2, 16, 1000]),  # main is not a step
        ("step?", [0, 2]),
        ("step1000+step2", [2, 1000]),
        ("step1*+step0+step1*", [0, 16, 1000]),
    ],
)
def test_patterns_and_lists(hub: StandInHub, steps: HubSteps, pattern: str, expected: list[int]) -> None:
    found = steps.find(f"someone/gpt@{pattern}")
    assert list(found.items()) == [
        (step, Revision("someone/gpt", f"step{step}", commit_of(f"step{step}"))) for step in expected
    ]
    assert not hub.fetched


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["step-120000", "step-40000"], [40_000, 120_000]),
        (["stage1-step1000-tokens5B", "stage1-step20-tokens1B"], [20, 1000]),
        (["ckpt_010", "ckpt_002"], [2, 10]),
        (["checkpoint-500", "iter1m", "global_step7"], [7, 500, 1_000_000]),
        (["step-50K-105b", "step-7k-15b", "step900M"], [7_000, 50_000, 900_000_000]),
    ],
)
def test_names_of_other_trainings(hub: StandInHub, steps: HubSteps, names: list[str], expected: list[int]) -> None:
    for name in names:
        (hub.remote / name).mkdir()
    assert list(steps.find("someone/gpt@" + "+".join(names))) == expected


@pytest.mark.parametrize(
    "name",
    ["v1.0", "v1", "2024-01-01", "1000", "step", "step-x5", "step5B", "step1.5k", "step50kb", "step1000M"],
)
def test_other_names_are_no_steps(hub: StandInHub, steps: HubSteps, name: str) -> None:
    (hub.remote / name).mkdir()
    with pytest.raises(model.CheckpointError, match=f"the repository has no training step '{name}'"):
        steps.find(f"someone/gpt@{name}")
    assert list(steps.find("someone/gpt@*")) == list(STEPS)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("step3*", "the repository has no training step 'step3*'"),
        ("step0+step7", "the repository has no training step 'step7'"),
        ("main+step0", "the repository has no training step 'main'"),
        ("*2", "'step2' and 'stage2-step2' are both step 2: choose one of them"),
    ],
)
def test_a_missing_or_ambiguous_step_gives_one_sentence(
    hub: StandInHub, steps: HubSteps, pattern: str, message: str
) -> None:
    if pattern == "*2":
        (hub.remote / "stage2-step2").mkdir()
    with pytest.raises(model.CheckpointError) as error:
        steps.find(f"someone/gpt@{pattern}")
    first, second = "'step2' and 'stage2-step2'", "'stage2-step2' and 'step2'"  # in the order of the Hub
    assert str(error.value).replace(second, first) == f"someone/gpt@{pattern}: {message}"


def test_a_step_is_downloaded_once_on_demand(hub: StandInHub, steps: HubSteps) -> None:
    found = steps.find("someone/gpt@step*")
    loaded = open_step(steps, found[16])
    assert torch.equal(loaded.trace("To be").logits, tiny_model(seed=16).trace("To be").logits)
    assert {revision for revision, _ in hub.fetched} == {"step16"}
    n_fetched = len(hub.fetched)
    open_step(steps, found[16])
    assert len(hub.fetched) == n_fetched and not hub.cache.exists()


def test_the_least_recently_used_steps_are_deleted(hub: StandInHub, steps: HubSteps) -> None:
    found = steps.find("someone/gpt@step*")
    open_step(steps, found[0])
    n_bytes = scan_cache_dir(steps.folder).size_on_disk
    steps.max_bytes = int(2.5 * n_bytes)
    for at, step in enumerate((2, 0, 16), 1):
        for path in steps.folder.glob("*/snapshots/*"):  # the clock of a file system may be coarse
            os.utime(path, (path.stat().st_mtime - 10, path.stat().st_mtime - 10))
        open_step(steps, found[step])
        assert len(kept(steps)) == min(at + 1, 2)
    assert kept(steps) == {"step0", "step16"}
    assert scan_cache_dir(steps.folder).size_on_disk <= steps.max_bytes
    assert torch.equal(open_step(steps, found[2]).gpt.wte.weight, tiny_model(seed=2).gpt.wte.weight)
    steps.max_bytes = 1
    blobs = next(steps.folder.glob("*/blobs"))
    partial, stale = blobs / "a.1.incomplete", blobs / "a.2.incomplete"
    for path in (partial, stale):
        path.touch()
    os.utime(stale, (0, 0))
    with steps.files(found[0]):
        open_step(steps, found[16])
        assert kept(steps) >= {"step0", "step16"}  # nothing is deleted while a step is in use
    assert len(kept(steps)) == 1  # the newest, even if it alone is too large
    assert partial.exists() and not stale.exists()


def test_offline_the_steps_in_the_caches_are_found(hub: StandInHub, steps: HubSteps) -> None:
    found = steps.find("someone/gpt@step*")
    open_step(steps, found[0])
    model.load("someone/gpt@step2", device="cpu")  # in the client's own cache
    hub.is_online = False
    assert steps.find("someone/gpt@step*") == {0: found[0], 2: found[2]}
    n_fetched = len(hub.fetched)
    for step in (0, 2):
        loaded = open_step(steps, found[step])
        assert torch.equal(loaded.gpt.wte.weight, tiny_model(seed=step).gpt.wte.weight)
    assert len(hub.fetched) == n_fetched
    for revision, name in ((found[16], "step16"), (Revision("someone/gpt", "step5", commit_of("step5")), "step5")):
        with pytest.raises(model.CheckpointError) as error:
            open_step(steps, revision)
        assert (
            str(error.value) == f"someone/gpt@{name}: the Hub cannot be reached, and the repository is not in its cache"
        )
    with pytest.raises(model.CheckpointError, match=r"cannot be reached, and its cache has no training step 'step16'"):
        steps.find("someone/gpt@step0+step16")


def test_offline_without_a_cache(hub: StandInHub, steps: HubSteps) -> None:
    hub.is_online = False
    with pytest.raises(model.CheckpointError) as error:
        steps.find("someone/gpt@step*")
    reason = "the Hub cannot be reached, and its cache has no training step 'step*'"
    assert str(error.value) == f"someone/gpt@step*: {reason}"


def test_the_clients_own_cache_is_used_and_never_trimmed(hub: StandInHub, steps: HubSteps) -> None:
    steps.max_bytes = 1
    found = steps.find("someone/gpt@step*")
    for step in (2, 16):
        model.load(f"someone/gpt@step{step}", device="cpu")
    n_fetched = len(hub.fetched)
    open_step(steps, found[2])
    assert len(hub.fetched) == n_fetched and not steps.folder.exists()
    for step in (0, 1000):
        open_step(steps, found[step])
    assert kept(steps) == {"step1000"}
    (own,) = scan_cache_dir(hub.cache).repos
    assert own.refs.keys() == {"step2", "step16"}


def test_a_step_to_keep_is_in_the_clients_own_cache(hub: StandInHub, steps: HubSteps) -> None:
    with steps.files(steps.find("someone/gpt@step*")[16], keep=True) as folder:
        assert folder.is_relative_to(hub.cache) and not steps.folder.exists()


def test_a_step_with_only_the_older_weight_file(hub: StandInHub, steps: HubSteps) -> None:
    """The oracle is ``transformers``."""
    gpt = reference("pythia")
    write(gpt, hub.remote / "step3")
    weights = load_file(hub.remote / "step3" / "model.safetensors")
    mask = torch.ones(1, 1, 8, 8, dtype=torch.bool).tril()
    buffers = {"bias": mask, "masked_bias": torch.tensor(-1e9), "rotary_emb.inv_freq": torch.ones(2)}
    weights |= {f"gpt_neox.layers.0.attention.{name}": buffer for name, buffer in buffers.items()}
    torch.save(weights, hub.remote / "step3" / "pytorch_model.bin")
    (hub.remote / "step3" / "model.safetensors").unlink()
    loaded = open_step(steps, steps.find("someone/gpt@step3+step0")[3])
    ids = torch.arange(8)[None]
    with torch.inference_mode():
        assert max_difference(loaded.trace(ids[0].tolist()).logits, gpt(ids).logits[0]) <= 1e-4


class Code:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("executed",)


def test_code_in_a_step_is_never_executed(
    hub: StandInHub, steps: HubSteps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (hub.remote / "step0" / "model.safetensors").unlink()
    (hub.remote / "step0" / "pytorch_model.bin").write_bytes(pickle.dumps({"wte.weight": Code()}, protocol=2))
    with pytest.raises(model.CheckpointError, match="never executed"):
        open_step(steps, steps.find("someone/gpt@step*")[0])
    assert not (tmp_path / "executed").exists()


def test_one_revision_is_opened_at_a_time(hub: StandInHub) -> None:
    with pytest.raises(model.CheckpointError, match="only app.py opens several revisions: name one of them"):
        model.load("someone/gpt@step*")
    assert not hub.fetched
