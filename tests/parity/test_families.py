"""Folders of other families that transformers wrote: the same logits, attention weights and greedy text."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

import model
from helpers import also_slow
from helpers.engine import KERNELS, Asked, finish
from helpers.files import edit_json
from helpers.models import batch, max_difference, prompt_ids
from helpers.oracles.families import ONE_OF_EACH, SHAPES, one_of_each_kind, reference, write
from model.generate import generate_naive
from model.gpt import GPT
from model.modules.cache import KVCache
from model.serving import graph_reader
from model.serving.choose_reader import choose_reader
from model.serving.engine import Engine
from model.serving.graph_reader import GraphReader
from model.serving.reader import Reader
from model.serving.torch_reader import TorchReader

TOLERANCE = 1e-4


def load(folder: Path) -> model.LoadedModel:
    return model.load(folder, device="cpu", dtype="float32")


@torch.inference_mode()
def assert_same(gpt: PreTrainedModel, loaded: model.LoadedModel) -> None:
    """Logits, and every head's attention weights, on random tokens as long as the context; cached as uncached."""
    config = loaded.config
    ids = prompt_ids(config.context_length, config.vocab_size)
    theirs = gpt(torch.tensor([ids]), output_attentions=True)
    trace = loaded.trace(ids)
    assert max_difference(trace.logits, theirs.logits[0]) <= TOLERANCE
    assert max_difference(trace.attention, torch.cat(theirs.attentions)) <= TOLERANCE
    texts = batch(3, 7, vocab_size=config.vocab_size)
    fused = loaded.gpt(texts).logits
    assert max_difference(fused, gpt(texts).logits) <= TOLERANCE
    cache = KVCache(config, batch_size=3)
    pieces = [loaded.gpt(part, cache=cache).logits for part in texts.split([3, 1, 2, 1], 1)]
    assert max_difference(torch.cat(pieces, 1), fused) <= 1e-5


@pytest.mark.parametrize("name", one_of_each_kind(SHAPES))
def test_logits_equal_transformers_for_every_shape(name: str, tmp_path: Path) -> None:
    gpt = reference(name)
    loaded = load(write(gpt, tmp_path / "theirs"))
    assert_same(gpt, loaded)
    assert sum(p.numel() for p in loaded.gpt.parameters()) == loaded.config.n_parameters
    assert loaded.model_type == gpt.config.model_type
    # Both can read the folder that Headscope writes.
    loaded.save(tmp_path / "ours")
    assert load(tmp_path / "ours").config == loaded.config
    again = AutoModelForCausalLM.from_pretrained(
        tmp_path / "ours", dtype=torch.float32, attn_implementation="eager"
    ).eval()
    assert_same(again, loaded)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("qwen2", {"sliding_window": 4}),
        ("qwen2", {"sliding_window": 4, "use_sliding_window": True, "max_window_layers": 2}),
        ("qwen3", {"sliding_window": 4, "use_sliding_window": True, "layer_types": ["full_attention"] * 2}),
        ("qwen3", {"sliding_window": 32, "use_sliding_window": True, "max_window_layers": 1}),
        ("mistral", {"sliding_window": 8_192, "max_position_embeddings": 20_000}),
    ],
)
def test_windows_that_are_never_in_use(name: str, changes: dict[str, Any], tmp_path: Path) -> None:
    write(reference(name), tmp_path)
    edit_json(tmp_path / "config.json", **{"layer_types": ..., "use_sliding_window": ...} | changes)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, attn_implementation="eager").eval()
    loaded, ids = load(tmp_path), prompt_ids(32)
    assert max_difference(loaded.trace(ids).logits, theirs(torch.tensor([ids])).logits[0]) <= TOLERANCE


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", one_of_each_kind([*ONE_OF_EACH, "gpt2, plain", "gpt2, untied head"]))
def test_half_precision_weights_equal_transformers(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    write(reference(name).to(dtype), tmp_path)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32, attn_implementation="eager").eval()
    assert_same(theirs, load(tmp_path))


@pytest.mark.parametrize("name", ["gpt2, plain", "pythia", *also_slow("gpt2, untied head", "llama, grouped, tied")])
def test_sharded_weights_and_padded_vocabulary(name: str, tmp_path: Path) -> None:
    gpt = reference(name, vocab_size=96)
    write(gpt, tmp_path, max_shard_size="8KB")
    assert not (tmp_path / "model.safetensors").exists()
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 2
    loaded = load(tmp_path)
    assert_same(gpt, loaded)
    assert len(loaded.ids_without_token) == 31 and len(loaded.sha256) == 64


READERS: dict[str, Callable[[GPT], Reader | None]] = {
    "modules": lambda gpt: TorchReader(gpt, 4),
    "graphs": lambda gpt: GraphReader(gpt, 4, capture=False),
    "loops": lambda gpt: choose_reader(gpt, 4, KERNELS),
}


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("name", one_of_each_kind(ONE_OF_EACH))
def test_batched_texts_equal_transformers(
    name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts of different lengths, one recorded and one with heads removed, are what they would be alone."""
    monkeypatch.setattr(graph_reader, "MIN_GRAPH_LENGTH", 8)
    loaded = load(write(reference(name), tmp_path))
    reader = READERS[kind](loaded.gpt)
    if reader is None:
        pytest.skip("the loops do not know this model, or this processor")
    engine = Engine(loaded, max_batch=4, reader=reader)
    mask = torch.ones(loaded.config.n_layer, loaded.config.n_head)
    mask[1, 0] = 0
    options: list[dict[str, Any]] = [{}, {}, {"record": True}, {"head_mask": mask}]
    asked = [
        Asked(loaded, prompt_ids(2 + 3 * i, seed=i), 10 + i, seed=i, settings={"temperature": i % 2}, **option)
        for i, option in enumerate(options)
    ]
    engine.submit(*[each.sequence for each in asked])
    finish(engine)
    for each in asked:
        request = each.sequence.request
        if request.head_mask is None:
            assert each.ids == generate_naive(loaded.gpt, request)
        else:
            expected = loaded.generate(request.prompt, 13, temperature=1, seed=3, head_mask=mask)
            assert each.ids == [step.token_id for step in expected]


# A token without a text, of which the wide vocabulary has many, is never drawn here.
@pytest.mark.parametrize("name", one_of_each_kind(name for name in SHAPES if "wide vocabulary" not in name))
def test_greedy_text_equals_transformers(name: str, tmp_path: Path) -> None:
    gpt = reference(name)
    loaded = load(write(gpt, tmp_path))
    ids = prompt_ids(4, loaded.config.vocab_size)
    reading = torch.tensor([ids])
    options = {"do_sample": False, "max_new_tokens": 28, "pad_token_id": 0, "eos_token_id": None}
    theirs = gpt.generate(reading, attention_mask=torch.ones_like(reading), **options)[0, 4:].tolist()
    assert [step.token_id for step in loaded.generate(ids, 28, temperature=0)] == theirs
