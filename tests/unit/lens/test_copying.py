"""Copying scores, compared with transformers' modules, and for heads constructed to copy or to do the opposite."""

from pathlib import Path

import pytest
import torch
from transformers import GPT2LMHeadModel

import model
from helpers.files import ROOT
from helpers.models import max_difference, tiny_gpt, tiny_model
from model.lens.head_roles import CHANCE, CLEAR_COPYING, copying_scores, ordinary_tokens, sampled_tokens

IDS = torch.tensor([3, 8, 21, 22, 40, 64])


@torch.inference_mode()
def test_token_by_token_in_transformers(tmp_path: Path) -> None:
    loaded = tiny_model(n_layer=3, n_embd=24, n_head=4)
    loaded.save(tmp_path)
    theirs = GPT2LMHeadModel.from_pretrained(tmp_path, dtype=torch.float32).eval()
    embedding, blocks = theirs.transformer.wte.weight, theirs.transformer.h
    expected = torch.zeros(3, 4)
    for layer, block in enumerate(blocks):
        for head in range(4):
            part = slice(6 * head, 6 * head + 6)
            for token in IDS:
                x = embedding[token]
                if layer:
                    x = x + blocks[0].mlp(blocks[0].ln_2(x))
                value = (block.ln_1(x) @ block.attn.c_attn.weight)[48:][part]
                written = value @ block.attn.c_proj.weight[part]
                final = (written - written.mean()) * theirs.transformer.ln_f.weight
                logits = theirs.lm_head(final)[IDS]
                below = logits < logits[IDS == token]
                expected[layer, head] += below.sum() / 5 / 6
    assert max_difference(copying_scores(loaded.gpt, IDS), expected) < 1e-5


def test_heads_made_to_copy_to_oppose_and_to_write_nothing() -> None:
    gpt = tiny_gpt(n_layer=1, n_head=3, n_embd=48, vocab_size=65)
    block, C = gpt.h[0], 48
    for part in (gpt.ln_f, block.ln_1):
        part.weight.fill_(1)
        part.bias.zero_()
    block.attn.c_attn.weight[2 * C :] = torch.eye(C)  # the values of a head are its part of the vector
    for head, factor in enumerate((1.0, -1.0, 0.0)):
        part = slice(16 * head, 16 * head + 16)
        block.attn.c_proj.weight[:, part] = factor * torch.eye(C)[:, part]
    copies, opposes, nothing = copying_scores(gpt, torch.arange(65))[0].tolist()
    assert copies > 0.95 and opposes < 0.05 and nothing == CHANCE


@pytest.mark.parametrize(("n_embd", "n_head"), [(16, 2), (24, 4), (64, 4), (256, 8)])
def test_heads_with_random_weights_are_not_said_to_copy(n_embd: int, n_head: int) -> None:
    scores = torch.stack(
        [copying_scores(tiny_gpt(seed, n_embd=n_embd, n_head=n_head), torch.arange(65)) for seed in range(8)]
    )
    assert scores.mean() == pytest.approx(CHANCE, abs=0.05)
    assert scores.max() < 0.75 < CLEAR_COPYING


def test_the_heads_that_carry_a_name_copy_it() -> None:
    loaded = model.load(ROOT / "checkpoints" / "stories-bpe", device="cpu", dtype="float32")
    scores = copying_scores(loaded.gpt, sampled_tokens(loaded))
    assert all(scores[place] >= CLEAR_COPYING for place in ((6, 0), (7, 6), (5, 6)))  # as patching finds them
    assert int((scores >= CLEAR_COPYING).sum()) <= 8  # of 64
    small = model.load(ROOT / "checkpoints" / "two-layer-steps", device="cpu", dtype="float32")
    assert copying_scores(small.gpt, sampled_tokens(small))[1, 2] > 0.98  # its induction head


def test_too_few_tokens_say_nothing() -> None:
    gpt = tiny_gpt()
    for n in (0, 1):
        assert torch.equal(copying_scores(gpt, torch.arange(n)), torch.full((2, 2), CHANCE))


def test_the_sample_is_of_different_ordinary_tokens() -> None:
    loaded = tiny_model()
    assert sorted(sampled_tokens(loaded).tolist()) == ordinary_tokens(loaded).tolist()
    few = sampled_tokens(loaded, 10)
    assert len(set(few.tolist())) == 10 and torch.equal(few, sampled_tokens(loaded, 10))
