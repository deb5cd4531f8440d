"""The table of families in ``docs/checkpoints.md``: how far each is from transformers, on each way to read a text.

Run as a program, this file prints the table and writes it into the page.
"""

import math
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

import model
from helpers.engine import KERNELS, Asked, finish
from helpers.files import ROOT
from helpers.models import max_difference, prompt_ids
from helpers.oracles.families import SHAPES, reference, write
from model.gpt import GPT
from model.modules.cache import KVCache
from model.serving.choose_reader import choose_reader
from model.serving.engine import Engine
from model.serving.reader import Reader
from model.serving.torch_reader import TorchReader

PAGE = ROOT / "docs" / "checkpoints.md"
READERS: dict[str, Callable[[GPT], Reader | None]] = {
    "batch, PyTorch": lambda gpt: TorchReader(gpt, 3),
    "batch, loops": lambda gpt: choose_reader(gpt, 3, KERNELS),
}
WAYS = ("whole text", "cached", *READERS)
HEADER = f"| `model_type` | shapes | {' | '.join(WAYS)} |\n| --- | {'---: | ' * (1 + len(WAYS))}".strip() + "\n"
SPARE = 1.5  # between a measured difference and one in the table, since processors round differently
Differences = dict[str, float]  # by way


def worst(ours: tuple[Tensor, Tensor], theirs: tuple[Tensor, Tensor]) -> float:
    """The largest difference of logits and of attention weights."""
    return max(max_difference(one, other) for one, other in zip(ours, theirs, strict=True))


def read(gpt: PreTrainedModel, ids: list[int]) -> tuple[Tensor, Tensor]:
    """transformers' logits ``(T, vocab_size)`` and attention weights ``(n_layer, n_head, T, T)``."""
    found = gpt(torch.tensor([ids]), output_attentions=True)
    return found.logits[0], torch.cat(found.attentions)


def batched(gpt: PreTrainedModel, loaded: model.LoadedModel, reader: Reader) -> float:
    """Three texts of different lengths, written together and recorded."""
    engine = Engine(loaded, max_batch=3, reader=reader)
    asked = [Asked(loaded, prompt_ids(2 + 5 * i, seed=i), 6 + 4 * i, seed=i, record=True) for i in range(3)]
    engine.submit(*[each.sequence for each in asked])
    finish(engine)
    found = []
    for each in asked:
        ids = [*each.sequence.request.prompt, *each.ids]
        logits, weights = read(gpt, ids)
        for at, step in enumerate(each.steps, len(ids) - len(each.ids) - 1):
            assert step.logits is not None and step.attention is not None
            found.append(worst((step.logits, step.attention), (logits[at], weights[:, :, at, : at + 1])))
    return max(found)


@torch.inference_mode()
def differences(name: str, folder: Path) -> Differences:
    gpt = reference(name)
    loaded = model.load(write(gpt, folder), device="cpu", dtype="float32")
    ids = prompt_ids(loaded.config.context_length, loaded.config.vocab_size)
    logits, weights = read(gpt, ids)
    trace, cache = loaded.trace(ids), KVCache(loaded.config, batch_size=1)
    pieces = torch.tensor([ids]).split([3, 1, 2, len(ids) - 6], 1)
    cached = torch.cat([loaded.gpt(piece, cache=cache).logits for piece in pieces], 1)
    found = {
        "whole text": worst((trace.logits, trace.attention), (logits, weights)),
        "cached": max_difference(cached[0], logits),
    }
    for way, make in READERS.items():
        if way == "batch, PyTorch" or loaded.config.has_loops:
            reader = make(loaded.gpt)
            assert reader is not None
            found[way] = batched(gpt, loaded, reader)
    return found


def measured() -> dict[str, list[Differences]]:
    """The differences of every shape, by family."""
    found = defaultdict(list)
    for name, (model_type, _) in SHAPES.items():
        with tempfile.TemporaryDirectory() as folder:
            found[model_type].append(differences(name, Path(folder)))
    return found


def rounded_up(number: float) -> str:
    """To 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(number))
    return f"{next(digit * power for digit in (1, 2, 5, 10) if digit * power >= number):.0e}"


def row(model_type: str, shapes: list[Differences]) -> str:
    cells = [
        rounded_up(SPARE * max(shape[way] for shape in shapes)) if all(way in shape for shape in shapes) else "none"
        for way in WAYS
    ]
    return f"| `{model_type}` | {len(shapes)} | {' | '.join(cells)} |\n"


@pytest.mark.slow
def test_the_table_of_families_is_that_of_the_page() -> None:
    """Which families there are and which ways they have are the same; no difference is larger than the page says."""
    found = measured()
    table = HEADER + "".join(row(*each) for each in found.items())
    print(table)
    stated = PAGE.read_text(encoding="utf-8").partition(HEADER)[2].partition("\n\n")[0]
    rows = {cells[1].strip(" `"): cells[2:-1] for cells in (line.split("|") for line in stated.splitlines())}
    assert rows.keys() == found.keys()
    for model_type, shapes in found.items():
        count, *bounds = map(str.strip, rows[model_type])
        assert int(count) == len(shapes)
        for way, bound in zip(WAYS, bounds, strict=True):
            of_way = [shape[way] for shape in shapes if way in shape]
            assert max(of_way) <= float(bound) if of_way else bound == "none", (model_type, way)


if __name__ == "__main__":
    text = HEADER + "".join(row(*each) for each in measured().items())
    print(text)
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(re.sub(re.escape(HEADER) + r"(\|.*\n)*", lambda _: text, page), encoding="utf-8")
