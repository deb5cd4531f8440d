"""No folder, whatever its content, takes down another model, the page or /health."""

import os
import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest
from safetensors.torch import load_file, save_file

from helpers.api import post
from helpers.server import Server
from web.runs import openings


def overflowing(folder: Path) -> Path:
    """A model with finite weights whose logits are not finite."""
    weights = load_file(folder / "model.safetensors")
    save_file({name: tensor.fill_(3e38) for name, tensor in weights.items()}, folder / "model.safetensors")
    return folder


def with_surrogate(folder: Path) -> Path:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "\\ud800.safetensors"}}')
    return folder


def with_strange_reports(folder: Path) -> Path:
    """A checkpoint that can be served, with an invalid card and an invalid report."""
    os.mkfifo(folder / "README.md")  # reading it would block forever
    (folder / "training.json").write_text('{"history": ' + "[" * 100_000)
    return folder


def with_links_nowhere(folder: Path) -> Path:
    """A checkpoint that can be served, whose other files are links that the system cannot follow."""
    for name in ("steps", "opening.json", "first_screen.json", "README.md", "training.json", "chat_template.jinja"):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to("a" * 256)
    return folder


def test_bad_checkpoints_do_not_stop_the_others(launch: Any, checkpoints: Path, tmp_path: Path) -> None:
    def copy(name: str) -> Path:
        return shutil.copytree(checkpoints / "other", tmp_path / name)

    bad = [overflowing(copy("overflowing")), with_surrogate(copy("surrogate"))]
    bad.append(copy(b"bad\xff".decode("utf-8", "surrogateescape")))
    strange = [with_strange_reports(copy("strange")), with_links_nowhere(copy("linked"))]
    server = launch(*bad, *strange, checkpoints / "tiny")
    health = httpx.get(f"{server.url}/health")
    names = ["strange", "linked", "tiny"]
    assert health.status_code == 200 and health.json()["models"] == names
    failed = health.json()["failed"]
    assert set(failed) == {"overflowing", "surrogate", r"bad\udcff"}
    assert failed["overflowing"].startswith("The model's logits") and "NaN or infinity" in failed["overflowing"]
    assert "surrogate" in failed["surrogate"] and "not UTF-8" in failed[r"bad\udcff"]
    assert [model["id"] for model in httpx.get(f"{server.url}/v1/models").json()["data"]] == names
    landing = httpx.get(f"{server.url}/look/landing").json()
    assert [model["name"] for model in landing["models"]] == names
    assert landing["pointer"]["model"] == "strange" and len(landing["pointer"]["notices"]) == 3
    for name in ("strange", "linked"):
        assert httpx.get(f"{server.url}/look/steps/{name}").json() == {"steps": [], "on_disk": []}
    assert httpx.get(f"{server.url}/").status_code == 200
    assert post(server, model="tiny").status_code == post(server, model="strange").status_code == 200
    assert post(server, model="overflowing").status_code == 404


def test_a_model_that_cannot_write_its_opening_is_still_listed(
    launch: Any, checkpoints: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = openings.write_opening

    def fail(loaded: Any) -> Any:
        if loaded.name == "other":
            raise FloatingPointError("overflow")
        return write(loaded)

    monkeypatch.setattr(openings, "write_opening", fail)
    server: Server = launch(checkpoints / "other", checkpoints / "tiny")
    assert httpx.get(f"{server.url}/health").json() == {
        "status": "ok",
        "models": ["tiny"],
        "failed": {"other": "Overflow"},
    }
    assert httpx.get(f"{server.url}/look/landing").json()["pointer"]["model"] == "tiny"


def test_panics_in_native_libraries_are_reported(
    launch: Any, checkpoints: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Panics in Rust reach Python as a ``BaseException``."""

    class Panic(BaseException):
        pass

    def panic(loaded: Any) -> None:
        if loaded.name == "other":
            raise Panic

    monkeypatch.setattr("web.serving.served_models.check_writes", panic)
    server = launch(checkpoints / "other", checkpoints / "tiny")
    assert httpx.get(f"{server.url}/health").json()["failed"] == {"other": "Panic"}
