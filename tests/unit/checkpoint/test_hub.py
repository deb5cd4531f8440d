"""Hub repositories: the requested files, their order, and the errors if they are not available."""

import fnmatch
import json
import shutil
from pathlib import Path
from typing import Any

import httpx
import huggingface_hub
import pytest
import torch
from huggingface_hub import errors
from safetensors.torch import load_file, save_file

import model
from helpers.files import edit_json
from helpers.models import tiny_bpe, tiny_model


class Hub:
    """A stand-in for ``huggingface_hub.snapshot_download`` that copies the requested files from ``remote`` to
    ``cache``.
    """

    def __init__(self, folder: Path) -> None:
        self.remote, self.cache = folder / "remote", folder / "cache"
        self.fetched: list[str] = []
        self.revisions: list[str | None] = []
        self.error: Exception | None = None
        tiny_model().save(self.remote)
        (self.remote / "README.md").write_text("card")
        (self.remote / "training_args.bin").write_bytes(b"never fetched")

    def snapshot_download(
        self, repo_id: str, *, revision: str | None, cache_dir: None, allow_patterns: list[str]
    ) -> str:
        assert repo_id == "someone/gpt" and cache_dir is None
        if self.error:
            raise self.error
        self.revisions.append(revision)
        self.cache.mkdir(exist_ok=True)
        for path in sorted(self.remote.iterdir()):
            if any(fnmatch.fnmatch(path.name, pattern) for pattern in allow_patterns):
                shutil.copy(path, self.cache)
                self.fetched.append(path.name)
        return str(self.cache)


def write_pickles(folder: Path, names: list[str]) -> None:
    """The weights of a folder as pickles with an index, in place of the safetensors file."""
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    file_of = {name: names[i % len(names)] for i, name in enumerate(weights)}
    for name in names:
        torch.save({each: tensor for each, tensor in weights.items() if file_of[each] == name}, folder / name)
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": file_of}))


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    hub = Hub(tmp_path)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", hub.snapshot_download)
    return hub


def test_only_needed_files_are_downloaded(hub: Hub) -> None:
    loaded = model.load("someone/gpt", device="cpu")
    assert hub.fetched == ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"]
    assert loaded.name == "someone/gpt"
    assert torch.equal(loaded.trace("To be").logits, tiny_model().trace("To be").logits)


@pytest.mark.parametrize("name", ["chat_template.jinja", "tokenizer_config.json"])
def test_chat_template_is_downloaded(hub: Hub, name: str) -> None:
    """The oracle is the same folder, opened without the Hub."""
    template = "{{ messages[0].content }}"
    content = template if name.endswith(".jinja") else json.dumps({"chat_template": template})
    (hub.remote / name).write_text(content)
    assert model.load("someone/gpt", device="cpu").chat_template == template
    assert model.load(hub.remote, device="cpu").chat_template == template


def test_the_files_about_special_tokens_and_sampling_are_downloaded(hub: Hub) -> None:
    (hub.remote / "generation_config.json").write_text('{"eos_token_id": [3, 4], "temperature": 0.6}')
    (hub.remote / "special_tokens_map.json").write_text('{"pad_token": "!"}')
    loaded = model.load("someone/gpt", device="cpu")
    assert loaded.end_token_ids == (3, 4) and loaded.default_sampling == {"temperature": 0.6}
    assert loaded.named_tokens == {"pad_token": "!"}


@pytest.mark.parametrize(
    ("file", "content"), [("generation_config.json", '{"eos_token_id": -1}'), ("special_tokens_map.json", "[]")]
)
def test_no_weights_are_fetched_where_they_are_refused(file: str, content: str, hub: Hub) -> None:
    (hub.remote / file).write_text(content)
    with pytest.raises(model.CheckpointError, match=file):
        model.load("someone/gpt")
    assert "model.safetensors" not in hub.fetched


def test_no_weights_are_fetched_where_the_chat_template_is_refused(hub: Hub) -> None:
    (hub.remote / "tokenizer_config.json").write_text('{"chat_template": 5}')
    with pytest.raises(model.CheckpointError, match="a chat_template of another kind"):
        model.load("someone/gpt")
    assert "model.safetensors" not in hub.fetched


def test_revision_is_passed_on(hub: Hub) -> None:
    assert model.load("someone/gpt@v1.0/final", device="cpu").name == "someone/gpt@v1.0/final"
    assert set(hub.revisions) == {"v1.0/final"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"model_type": "mamba"}, "model_type 'mamba', expected one of 'gpt2'"), ({"n_layer": 600}, "n_layer 600")],
)
def test_no_weights_are_fetched_for_another_kind_of_model(hub: Hub, changes: dict[str, Any], message: str) -> None:
    edit_json(hub.remote / "config.json", **changes)
    with pytest.raises(model.CheckpointError, match=message):
        model.load("someone/gpt")
    assert "model.safetensors" not in hub.fetched


def test_older_weight_file_is_a_fallback(hub: Hub) -> None:
    torch.save(load_file(hub.remote / "model.safetensors"), hub.remote / "pytorch_model.bin")
    model.load("someone/gpt")
    assert "pytorch_model.bin" not in hub.fetched
    (hub.remote / "model.safetensors").unlink()
    (hub.cache / "model.safetensors").unlink()
    loaded = model.load("someone/gpt", device="cpu")
    assert torch.equal(loaded.trace("To be").logits, tiny_model().trace("To be").logits)


def test_shards_in_pickles_are_fetched(hub: Hub) -> None:
    """The oracle is the same folder, opened without the Hub."""
    write_pickles(hub.remote, ["a.bin", "b.bin"])
    loaded = model.load("someone/gpt", device="cpu")
    assert hub.fetched[-2:] == ["a.bin", "b.bin"] and "training_args.bin" not in hub.fetched
    assert torch.equal(loaded.trace("To be").logits, model.load(hub.remote, device="cpu").trace("To be").logits)
    (hub.remote / "b.bin").unlink()
    shutil.rmtree(hub.cache)
    with pytest.raises(model.CheckpointError, match="^someone/gpt: it has no b.bin, or the cache lacks it"):
        model.load("someone/gpt")


def test_safetensors_are_preferred(hub: Hub) -> None:
    weights = load_file(hub.remote / "model.safetensors")
    write_pickles(hub.remote, ["a.bin"])
    (hub.remote / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": dict.fromkeys(weights, "one.safetensors")})
    )
    save_file(weights, hub.remote / "one.safetensors")
    model.load("someone/gpt")
    assert hub.fetched[-1] == "one.safetensors" and "a.bin" not in hub.fetched


def test_added_tokens_are_fetched(hub: Hub) -> None:
    spec = tiny_bpe(300).spec["model"]
    tiny_model(tokenizer=tiny_bpe(300), vocab_size=301).save(hub.remote)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (hub.remote / name).unlink()
    (hub.remote / "vocab.json").write_text(json.dumps(spec["vocab"]))
    (hub.remote / "merges.txt").write_text("\n".join(" ".join(merge) for merge in spec["merges"]))
    (hub.remote / "added_tokens.json").write_text(json.dumps({"<pad>": 300}))
    assert model.load("someone/gpt", device="cpu").parse_prompt("a<pad>")[-1] == 300


@pytest.mark.parametrize("has_config", [False, True])
def test_an_adapter_alone_says_what_it_is(hub: Hub, has_config: bool) -> None:
    (hub.remote / "model.safetensors").rename(hub.remote / "adapter_model.safetensors")
    (hub.remote / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "someone/base"}))
    if not has_config:
        (hub.remote / "config.json").unlink()
    for source in ("someone/gpt", hub.remote):
        with pytest.raises(model.CheckpointError, match="an adapter .* 'someone/base', expected .* merge_and_unload"):
            model.load(source)
    assert "adapter_model.safetensors" not in hub.fetched


def test_repository_with_missing_files_is_refused(hub: Hub) -> None:
    (hub.remote / "model.safetensors").unlink()
    with pytest.raises(model.CheckpointError, match="^someone/gpt: it has no weights .model.safe.*bin.index"):
        model.load("someone/gpt")
    (hub.remote / "tokenizer.json").unlink()
    (hub.cache / "tokenizer.json").unlink()
    with pytest.raises(model.CheckpointError, match=r"^someone/gpt: it has neither tokenizer.json nor vocab.json and"):
        model.load("someone/gpt")


RESPONSE = httpx.Response(404, request=httpx.Request("GET", "https://hub.test"))
OFFLINE = "the Hub cannot be reached, and the repository is not in its cache"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (errors.LocalEntryNotFoundError("..."), OFFLINE),
        (errors.OfflineModeIsEnabled("..."), OFFLINE),
        (httpx.ConnectTimeout("timed out"), OFFLINE),
        (TimeoutError(), OFFLINE),
        (errors.GatedRepoError("...", response=RESPONSE), "its owner has to grant access first"),
        (
            errors.RepositoryNotFoundError("...", response=RESPONSE),
            "no such repository, or it is private",
        ),
        (errors.RevisionNotFoundError("...", response=RESPONSE), "the repository has no revision 'v9'"),
        (RuntimeError("disk quota.\nmore"), r"it cannot be downloaded \(disk quota\)"),
    ],
)
def test_download_errors_give_a_reason(hub: Hub, error: Exception, reason: str) -> None:
    hub.error = error
    with pytest.raises(model.CheckpointError, match=f"^someone/gpt@v9: .*{reason}"):
        model.load("someone/gpt@v9")
