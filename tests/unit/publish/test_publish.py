"""The files that would be uploaded to the Hub, and the calls of its client; nothing leaves this machine."""

import inspect
import json
import re
import shutil
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import torch
from huggingface_hub import HfApi, RepoCard
from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError, OfflineModeIsEnabled
from huggingface_hub.utils import filter_repo_objects
from safetensors.torch import load_file, save_file

import model
from helpers.files import ROOT
from helpers.models import tiny_bpe, tiny_model
from model.checkpoint.write import write_snapshot
from web.publish import main, space_plan


class Hub:
    """Stands in for ``HfApi``: remembers the calls, and copies what is uploaded."""

    calls: list[tuple[str, dict[str, Any]]]
    uploaded: dict[str, bytes]
    exists = False
    error: Exception | None = None

    def __init__(self) -> None:
        self.calls, self.uploaded = [], {}

    def repo_exists(self, repo_id: str, *, repo_type: str) -> bool:
        if self.error:
            raise self.error
        return self.exists

    def __getattr__(self, name: str) -> Any:
        """Any other call, which must fit the real client's signature."""
        takes = inspect.signature(getattr(HfApi, name))

        def call(*arguments: Any, **options: Any) -> None:
            given = takes.bind(self, *arguments, **options).arguments
            self.calls.append((name, {key: value for key, value in given.items() if key != "self"}))

        return call

    def create_repo(self, repo_id: str, **options: Any) -> str:
        if self.error:
            raise self.error
        self.calls.append(("create_repo", {"repo_id": repo_id} | options))
        return f"https://hub.test/{repo_id}"

    def upload_folder(self, *, folder_path: str, **options: Any) -> None:
        self.calls.append(("upload_folder", options))
        paths = [path for path in Path(folder_path).rglob("*") if path.is_file()]
        self.uploaded = {path.relative_to(folder_path).as_posix(): path.read_bytes() for path in paths}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    hub = Hub()
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: hub)
    return hub


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    loaded = tiny_model()
    loaded.save(tmp_path / "tiny")
    write_snapshot(tmp_path / "tiny", 7, loaded.config, loaded.gpt.state_dict())
    for name in ("resume.safetensors", ".hidden", "notes.txt"):
        (tmp_path / "tiny" / name).write_text("private")
    (tmp_path / "tiny" / "training.json").write_text("{}")
    return tmp_path / "tiny"


def run(*arguments: object) -> None:
    assert main(list(map(str, arguments))) == 0


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    with pytest.raises(SystemExit) as stopped:
        main(list(map(str, arguments)))
    assert stopped.value.code == 2
    return capsys.readouterr().err


def put(files: dict[str, bytes], folder: Path) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def test_a_dry_run_shows_everything_and_uploads_nothing(
    hub: Hub, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("model", folder, "--repo", "me/tiny", "--dry-run")
    told = capsys.readouterr().out
    assert not hub.calls
    assert told.startswith("model me/tiny: 7 files, ")
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "training.json"):
        assert f"{(folder / name).stat().st_size:,}  {name}\n" in told
    assert "  steps/000007.safetensors\n" in told and "private" not in told and "notes.txt" not in told
    assert 'pipeline("text-generation", model="me/tiny")' in told and "library_name: transformers" in told
    assert told.endswith("Nothing was uploaded.\n")


def test_a_model_is_uploaded_and_opens_again(hub: Hub, folder: Path, tmp_path: Path) -> None:
    (folder / "README.md").write_text("---\nlicense: mit\n---\nMy model.\n")
    run("model", folder, "--repo", "me/tiny", "--private")
    (_, created), (_, sent) = hub.calls
    assert created["repo_id"] == "me/tiny" and created["private"] is True and created["exist_ok"] is True
    assert (sent["repo_id"], sent["repo_type"], sent["delete_patterns"]) == ("me/tiny", "model", None)
    assert hub.uploaded["README.md"] == b"---\nlicense: mit\n---\nMy model.\n"
    put(hub.uploaded, tmp_path / "again")
    assert model.load(tmp_path / "again").sha256 == model.load(folder).sha256
    assert (folder / "model.safetensors").stat().st_nlink == 1  # the staged links are gone


def test_space_is_created(hub: Hub, folder: Path) -> None:
    run("space", "--repo", "me/demo", "--checkpoint", "two-layer-steps", folder, "me/gpt@v1", "--hardware", "t4-small")
    (_, created), _ = hub.calls
    assert created["repo_type"] == "space" and created["space_sdk"] == "gradio"
    assert created["space_hardware"] == "t4-small"
    assert created["space_variables"] == [{"key": "HEADSCOPE_CHECKPOINT", "value": "two-layer-steps,tiny,me/gpt@v1"}]
    card = RepoCard(hub.uploaded["README.md"].decode())
    assert card.data["suggested_hardware"] == "t4-small" and card.data["models"] == ["me/gpt"]
    assert card.data["sdk"] == "gradio" and card.data["app_file"] == "app.py"
    assert hub.uploaded["requirements.txt"] == (ROOT / "requirements.txt").read_bytes()
    assert "checkpoints/tiny/steps/000007.safetensors" in hub.uploaded
    assert "checkpoints/two-layer-steps/model.safetensors" in hub.uploaded
    assert "checkpoints/stories-bpe/model.safetensors" not in hub.uploaded
    assert not [name for name in hub.uploaded if name.startswith("tests/") or "__pycache__" in name or "/." in name]


def test_a_space_that_exists_is_changed(hub: Hub, folder: Path) -> None:
    """``create_repo`` gives hardware and variables to a new Space only."""
    hub.exists = True
    run("space", "--repo", "me/demo", "--checkpoint", folder, "--hardware", "t4-small")
    (_, _), (_, sent), *changes = hub.calls
    assert "web/*.py" in sent["delete_patterns"] and "checkpoints/tiny/*" in sent["delete_patterns"]
    assert changes == [
        ("add_space_variable", {"repo_id": "me/demo", "key": "HEADSCOPE_CHECKPOINT", "value": "tiny"}),
        ("request_space_hardware", {"repo_id": "me/demo", "hardware": "t4-small"}),
    ]


@pytest.fixture
def below_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of this repository below a hidden folder."""
    root = tmp_path / ".local/src/headscope"
    for name in ("model", "web", "bench/readme"):
        shutil.copytree(ROOT / name, root / name)
    for name in ("app.py", "requirements.txt", "LICENSE", "README.md"):
        shutil.copy(ROOT / name, root)
    monkeypatch.setattr("web.publish.ROOT", root)
    return root


def test_a_space_is_published_from_below_a_hidden_folder(hub: Hub, folder: Path, below_hidden: Path) -> None:
    run("space", "--repo", "me/demo", "--checkpoint", folder)
    assert needed() <= hub.uploaded.keys()


def test_only_code_is_uploaded(hub: Hub, folder: Path, below_hidden: Path) -> None:
    run("space", "--repo", "me/demo", "--checkpoint", folder)
    usual = hub.uploaded.keys()
    for name in (
        "web/.env.py",
        "web/.ipynb_checkpoints/services-checkpoint.py",
        "web/__pycache__/services.cpython-312.pyc",
        "web/credentials.json",
        "web/js/key.json",
        "web/api-key",
        "model/weights.safetensors",
        "model/train/notes.md",
        "bench/readme/visitors.json",
        "api-key",
    ):
        put({name: b"private"}, below_hidden)
    run("space", "--repo", "me/demo", "--checkpoint", folder)
    assert hub.uploaded.keys() == usual and b"private" not in hub.uploaded.values()


@pytest.mark.parametrize("missing", [(), ("model", "bench")])
def test_a_space_loses_only_what_is_replaced(
    missing: tuple[str, ...], hub: Hub, folder: Path, below_hidden: Path
) -> None:
    """Old code would be imported in place of new code, and old weights loaded; the owner's own files stay."""
    for name in missing:
        shutil.rmtree(below_hidden / name)
    run("space", "--repo", "me/demo", "--checkpoint", folder)
    (_, sent) = hub.calls[-1]
    old = {"model/old/__init__.py", "web/js/old.mjs", "checkpoints/tiny/model-00001-of-00002.safetensors"}
    own = {"notes.md", "data/mine.json", "web/own.txt", "checkpoints/other/model.safetensors", ".gitattributes"}
    lost = set(filter_repo_objects(old | own, allow_patterns=sent["delete_patterns"]))
    assert lost == {name for name in old if not name.startswith(missing)}


def in_gpt2s_files(folder: Path) -> None:
    """Put the weights into shards, and the vocabulary into GPT-2's pair of files."""
    tiny_model(tokenizer=tiny_bpe(300)).save(folder)
    found = json.loads((folder / "tokenizer.json").read_text())["model"]
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.json").write_text(json.dumps(found["vocab"]))
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in found["merges"]]
    (folder / "merges.txt").write_text("\n".join(merges))
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = {name: f"part-{i % 2}.safetensors" for i, name in enumerate(sorted(weights))}
    for file in set(names.values()):
        save_file({name: weights[name] for name in names if names[name] == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    (folder / "chat_template.jinja").write_text("{{ messages }}")


@pytest.mark.parametrize("kind", ["usual", "of GPT-2"])
def test_what_a_space_gets_of_a_folder_is_all_that_is_read(hub: Hub, folder: Path, tmp_path: Path, kind: str) -> None:
    """The oracle: what was uploaded, opened on its own, is the same model. Nothing else of the folder is uploaded."""
    if kind == "of GPT-2":
        in_gpt2s_files(folder)
    run("space", "--repo", "me/demo", "--checkpoint", folder)
    files = {name: content for name, content in hub.uploaded.items() if name.startswith("checkpoints/tiny/")}
    put(files, tmp_path / "again")
    again, loaded = model.load(tmp_path / "again/checkpoints/tiny"), model.load(folder)
    assert (again.sha256, again.chat_template) == (loaded.sha256, loaded.chat_template)
    assert again.tokenizer.encode("To be") == loaded.tokenizer.encode("To be")
    assert b"private" not in files.values()


@pytest.mark.parametrize("kind", ["model", "space"])
def test_weights_in_a_pickle_are_not_published(
    kind: str, hub: Hub, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    given = [folder] if kind == "model" else ["--checkpoint", folder]
    told = refused(capsys, kind, *given, "--repo", "me/tiny")
    assert "has its weights in a pickle, pytorch_model.bin, which is not published" in told
    assert "`python -m model.checkpoint convert " in told and told.count("\n") == 1 and not hub.calls


def test_what_a_space_cannot_take_is_said(
    hub: Hub, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file, or a training step of a folder, may look like the id of a repository."""
    monkeypatch.chdir(folder.parent)
    (folder / "nano.pt").write_bytes(b"")
    for name, why in {
        "tiny/nano.pt": "convert the file to a folder with `python -m model.checkpoint convert`",
        str(folder / "nano.pt"): "convert the file to a folder with `python -m model.checkpoint convert`",
        "two-layer-steps@000016": "publish the whole folder",
        "../" + folder.parent.name + "/tiny@000007": "publish the whole folder",
        "nothing": "there is no such folder",
    }.items():
        told = refused(capsys, "space", "--repo", "me/x", "--checkpoint", name)
        assert "--checkpoint takes a name in checkpoints/, a folder, or USER/NAME[@REVISION] on the Hub" in told
        assert why in told
    assert not hub.calls


def test_a_space_on_zero_gpu(hub: Hub, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("space", "--repo", "me/demo", "--checkpoint", folder, "--hardware", "zero-a10g", "--dry-run")
    told = capsys.readouterr().out
    assert not hub.calls and told.startswith("space me/demo on zero-a10g: ")
    shown = told.split("---- requirements.txt\n\n")[1].split("\n\nNothing was uploaded.")[0].splitlines()
    usual = (ROOT / "requirements.txt").read_text().splitlines()
    changed = {line for line in shown if line not in usual}
    assert {line.split("  #")[0] for line in changed} == {"torch==2.11.0", "spaces==0.*"}
    assert [line for line in usual if line not in shown] == ["torch==2.13.0"]
    assert "  web/serving/zero_gpu.py\n" in told
    run("space", "--repo", "me/demo", "--checkpoint", folder, "--hardware", "zero-a10g")
    (_, created), _ = hub.calls
    assert created["space_hardware"] == "zero-a10g"
    assert hub.uploaded["requirements.txt"].decode().splitlines() == shown
    card = RepoCard(hub.uploaded["README.md"].decode())
    assert card.data["suggested_hardware"] == "zero-a10g" and card.data["python_version"] == "3.12"
    assert card.data["sdk"] == "gradio" and "models" not in card.data


def needed() -> set[str]:
    """The paths in the repository of all code and data that the app reads."""
    paths = [path for top in ("model", "web") for path in (ROOT / top).rglob("*")]
    return {path.relative_to(ROOT).as_posix() for path in paths if path.suffix in (".py", ".mjs", ".css", ".json")}


def test_a_space_holds_all_that_the_app_imports_and_serves() -> None:
    files = set(space_plan("me/demo", ["two-layer-steps"], "cpu-basic").files)
    assert needed() <= files
    pictures = set(re.findall(r"bench/readme/[\w.-]+", (ROOT / "README.md").read_text()))
    assert len(pictures) >= 2 and pictures <= files


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model", "no-such-folder", "--repo", "me/x"], "no-such-folder"),
        (["space", "--repo", "me/x", "--checkpoint", "missing"], "found 'missing': there is no such folder."),
        (["space", "--repo", "no-user"], "--repo must be USER/NAME, found 'no-user'"),
        (["space", "--repo", "me/x", "--hardware", "abacus"], "invalid choice: 'abacus'"),
        (["space", "--repo", "me/x", "--checkpoint", "two-layer-steps", "two-layer-steps"], "the same name"),
    ],
)
def test_unpublishable_folders_are_refused(
    arguments: list[str], message: str, hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(capsys, *arguments)
    assert not hub.calls


def test_a_card_that_cannot_be_read(folder: Path, hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "README.md").write_text("---\nlicense: [\n---\n")
    assert "the front matter of the card cannot be read" in refused(capsys, "model", folder, "--repo", "me/x")


def http_error() -> HfHubHTTPError:
    import httpx

    return HfHubHTTPError(
        "403 Forbidden\nmore", response=httpx.Response(403, request=httpx.Request("POST", "http://x"))
    )


class TransportError(Exception):
    """Of the Hub's HTTP library."""


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (LocalTokenNotFoundError("..."), "There is no token for the Hub: run `hf auth login`, or set HF_TOKEN."),
        (OfflineModeIsEnabled("..."), "HF_HUB_OFFLINE is set, so nothing can be uploaded."),
        (http_error(), "The Hub refused the request: 403 Forbidden"),
        (TransportError("no route"), "The Hub cannot be reached: no route"),
        (ConnectionRefusedError(111, "refused"), "The Hub cannot be reached:"),
    ],
)
def test_failed_uploads_give_a_reason(
    error: Exception, message: str, folder: Path, hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.error = error
    assert message in refused(capsys, "model", folder, "--repo", "me/tiny")


def test_what_is_uploaded_is_what_was_shown(folder: Path, hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    run("model", folder, "--repo", "me/tiny")
    told = capsys.readouterr().out
    assert all(f"{len(content):,}  {name}\n" in told for name, content in hub.uploaded.items())
    assert json.loads(hub.uploaded["config.json"])["model_type"] == "gpt2"
