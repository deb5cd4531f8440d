"""The last transformers 4, in an environment of its own, opens what is saved here: the same ids, numbers and text."""

import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file

import model
from helpers.files import ROOT
from helpers.models import max_difference, tiny_bpe, tiny_model
from helpers.oracles.families import ONE_OF_EACH, reference, write
from helpers.third_party import transformers_4
from helpers.third_party.packages import with_packages

TOLERANCE = 1e-4
TEXT = "To be, or not"
SHIPPED = ["shakespeare-char", "stories-bpe", "two-layer-steps"]
SAVED = ["characters", "bpe", *ONE_OF_EACH]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of checkpoints, each with what transformers 4 computed."""
    folder = tmp_path_factory.mktemp("transformers")
    environment = with_packages(folder, "transformers==4.*")
    for name in SHIPPED:
        (folder / name).symlink_to(ROOT / "checkpoints" / name)
    for name in SAVED:
        small(name, folder).save(folder / name)
    command = [sys.executable, transformers_4.__file__, TEXT, *(str(folder / name) for name in (*SHIPPED, *SAVED))]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return folder


def small(name: str, folder: Path) -> model.LoadedModel:
    if name in ONE_OF_EACH:
        return model.load(write(reference(name), folder / f"{name} of transformers"), device="cpu", dtype="float32")
    return tiny_model(tokenizer=tiny_bpe(), eos_token_id=0) if name == "bpe" else tiny_model()


@pytest.mark.parametrize("name", [*SHIPPED, *SAVED])
def test_the_same_ids_numbers_and_text(name: str, folder: Path) -> None:
    found = load_file(folder / f"{name}.safetensors")
    loaded = model.load(folder / name, device="cpu", dtype="float32")
    assert found["ids"].tolist() == loaded.tokenizer.encode(TEXT)
    trace = loaded.trace(TEXT)
    assert max_difference(trace.logits, found["logits"]) <= TOLERANCE
    assert max_difference(trace.attention, found["attention"]) <= TOLERANCE
    written = [step.token_id for step in loaded.generate(TEXT, len(found["written"]), temperature=0)]
    assert written and found["written"].tolist()[: len(written)] == written
