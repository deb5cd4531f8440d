"""The shipped checkpoints still write the same texts, and match their model cards."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import torch

import model
from helpers.serve_once import ROOT
from model import LoadedModel
from model.lens.head_roles import copying_scores, sampled_tokens
from model.lens.opening import MIN_COPIED, copied_tokens
from web.runs.openings import read_declared, write_declared

CHECKPOINTS = ROOT / "checkpoints"
FOLDERS = sorted(path.parent for path in CHECKPOINTS.glob("*/config.json"))
GOLDEN = json.loads(Path(__file__).with_name("golden.json").read_text())
MAX_WEIGHTS = {"shakespeare-char": 4_900_000, "stories-bpe": 12_000_000, "two-layer-steps": 1_000_000}
MAX_BYTES = 60_000_000  # of all of them together
CLOSEST = 0.01  # logits: nearer rivals than this would make a golden text a matter of rounding


@pytest.fixture(scope="module", params=FOLDERS, ids=lambda folder: folder.name)
def folder(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


@pytest.fixture(scope="module")
def loaded(folder: Path) -> LoadedModel:
    return model.load(folder, dtype="float32")


@pytest.fixture(scope="module")
def card(folder: Path) -> Any:
    return json.loads((folder / "training.json").read_text())


def test_a_greedy_text_is_pinned_token_by_token(folder: Path, loaded: LoadedModel) -> None:
    golden = GOLDEN[folder.name]
    steps = list(loaded.generate(golden["prompt"], len(golden["written"]), temperature=0))
    assert [step.token_id for step in steps] == golden["written"]
    assert min(float(step.logits.topk(2).values.diff().abs()) for step in steps) > CLOSEST


def test_first_sample_on_the_card_is_reproducible(loaded: LoadedModel, card: Any) -> None:
    assert [sample["seed"] for sample in card["samples"]] == [1, 2, 3]
    sample = card["samples"][0]
    settings = {name: sample[name] for name in ("max_new_tokens", "temperature", "seed")}
    assert "".join(step.text for step in loaded.generate(sample["prompt_tokens"], **settings)) == sample["text"]


def test_card_and_weights_are_complete(folder: Path, loaded: LoadedModel, card: Any) -> None:
    text = (folder / "README.md").read_text()
    for line in ("license: ", "language: ", "datasets: ", "tags: ", "library_name: ", "## Limits", "loss.svg"):
        assert line in text
    assert "Not described" not in text
    assert loaded.config.n_parameters <= MAX_WEIGHTS[folder.name]
    assert (folder / "model.safetensors").stat().st_size < 2.1 * loaded.config.n_parameters  # half precision
    assert all(
        weights.isfinite().all() and weights.dtype == torch.float32 for weights in loaded.gpt.state_dict().values()
    )
    assert card["finished"]


def test_the_opening_shows_a_copied_token(folder: Path, loaded: LoadedModel) -> None:
    """The token that the open head looks at is the next one: both are read at a glance."""
    declared = read_declared(folder)
    assert declared and declared.label
    opening = write_declared(loaded, declared)
    assert opening and opening.head == tuple(declared.head) and len(opening.ids) == opening.n_prompt + declared.tokens
    trace = loaded.trace(opening.ids)
    is_bpe = loaded.tokenizer.kind == "bpe"
    copying = copying_scores(loaded.gpt, sampled_tokens(loaded))
    if not is_bpe:
        copying = torch.ones_like(copying)  # no head copies every letter: this one fetches those of a name
    last = [each for each in copied_tokens(trace.attention, trace.logits, opening.ids, copying)
            if each.head == opening.head and each.query == len(opening.ids) - 2]  # fmt: skip
    assert len(last) == 1 and last[0].weight >= MIN_COPIED and last[0].probability >= 0.7
    texts = [token.text for token in trace.tokens]
    assert texts[last[0].key] == texts[-1]
    assert all(texts[place].strip().isalpha() for place in (last[0].key, last[0].query, -1))
    if is_bpe:
        assert all(text.strip() and text.isprintable() for text in texts)


def test_snapshots_open_and_differ(folder: Path, card: Any) -> None:
    steps = [row["step"] for row in card["heads"]]
    assert steps == sorted(int(path.stem) for path in folder.glob("steps/*.safetensors"))
    prompt = [1, 2, 3, 4]
    logits = [model.load(f"{folder}@{step:06d}", dtype="float32").trace(prompt).logits for step in steps]
    assert all(not torch.equal(a, b) for a, b in itertools.pairwise(logits))


def test_shipped_checkpoints_are_small() -> None:
    assert set(MAX_WEIGHTS) >= {folder.name for folder in FOLDERS} >= {"shakespeare-char"}
    assert sum(path.stat().st_size for path in CHECKPOINTS.rglob("*") if path.is_file()) < MAX_BYTES


def test_stories_end_with_the_end_token() -> None:
    folder = CHECKPOINTS / "stories-bpe"
    if not folder.exists():
        pytest.skip("checkpoints/stories-bpe is not here")
    loaded = model.load(folder)
    assert loaded.eos_token_id == 0
    steps = list(loaded.generate([0], 255, temperature=0.7, seed=1))
    assert steps[-1].finish_reason == "stop" and steps[-1].token_id == 0 and steps[-1].text == ""
