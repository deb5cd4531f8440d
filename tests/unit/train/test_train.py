"""Training from the command line: it learns, stops and resumes without loss, and refuses impossible settings."""

import argparse
import itertools
import json
import math
import os
import signal
from pathlib import Path

import pytest
import torch

import model
from helpers.models import tiny_config
from helpers.training import TRAINING_TEXT, train_flags
from model.gpt import GPT
from model.train.__main__ import main, parse_settings
from model.train.optimizers import BlockMuon
from model.train.settings import TrainSettings
from model.train.state import STATE_FILE
from model.train.trainer import Trainer


class StopAfter(Trainer):
    """A run that gets a signal during a chosen step."""

    stop_step = 0

    def step(self) -> float:
        loss = super().step()
        if self.progress["step"] + 1 == self.stop_step:
            os.kill(os.getpid(), signal.SIGTERM)
        return loss


def run_to(step: int, settings: TrainSettings, out: Path, resume: bool) -> Trainer:
    trainer = StopAfter(settings, out, resume=resume)
    trainer.stop_step = step
    trainer.run()
    return trainer


@pytest.mark.parametrize("kind", ["char", "bpe"])
def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path: Path, text: Path, kind: str) -> None:
    settings = TrainSettings(
        data=str(text),
        tokenizer=kind,
        arch="llama" if kind == "bpe" else "gpt2",
        vocab_size=280,
        n_layer=2,
        n_head=2,
        n_embd=16,
        context_length=16,
        batch_size=4,
        steps=14,
        eval_every=6,
        save_every=100,
        sample_every=0,
        attn_dropout=0.1,
        embd_dropout=0.1,
        repeated=0.5,
        average=0.9 if kind == "char" else 0.0,
        snapshots=4,
        autocast="float32",
    )
    whole = run_to(0, settings, tmp_path / "whole", resume=False)
    run_to(4, settings, tmp_path / "parts", resume=False)
    assert (tmp_path / "parts" / STATE_FILE).is_file()
    run_to(9, settings, tmp_path / "parts", resume=True)
    parts = run_to(0, settings, tmp_path / "parts", resume=True)
    for one, other in ((whole.gpt, parts.gpt), (whole.averaged, parts.averaged)):
        for (name, a), (_, b) in zip(one.state_dict().items(), other.state_dict().items(), strict=True):
            assert torch.equal(a, b), name
    assert whole.progress["history"] == parts.progress["history"]
    assert whole.progress["heads"] == parts.progress["heads"]
    assert not (tmp_path / "parts" / STATE_FILE).exists()


def test_training_learns_and_leaves_a_checkpoint(
    tmp_path: Path, text: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(train_flags(text, out, "--steps", "60", "--dropout", "0", "--sample-every", "30")) == 0
    report = json.loads((out / "training.json").read_text())
    losses = [row["validation_loss"] for row in report["history"]]
    assert losses[-1] < 0.7 * losses[0]
    assert report["finished"] and report["step"] == 60 and report["settings"]["data"] == "text.txt"
    assert len(report["data_sha256"]) == 64
    loaded = model.load(out)
    assert "".join(step.text for step in loaded.generate("the ", 8, seed=1))
    assert f"{report['best_validation_loss']:.4f}" in (out / "README.md").read_text()
    assert "validation" in capsys.readouterr().out


def test_the_average_of_the_weights_is_what_is_kept(tmp_path: Path, text: Path) -> None:
    settings = parse_settings(
        argparse.Namespace(data=str(text), out=tmp_path, resume=False, n_layer=1, n_head=1, n_embd=8, average=0.5)
    )
    trainer = Trainer(settings, tmp_path / "out")
    name = "h.0.mlp.c_fc.weight"
    expected = trainer.gpt.get_parameter(name).detach().double().clone()
    for step, decay in enumerate([0.1, 2 / 11, 3 / 12, 4 / 13, 5 / 14, 6 / 15, 7 / 16, 8 / 17, 0.5, 0.5]):
        trainer.step()
        trainer.progress["step"] = step + 1
        expected = decay * expected + (1 - decay) * trainer.gpt.get_parameter(name).detach().double()
    trainer.write_weights()
    kept = model.load(tmp_path / "out").gpt.get_parameter(name).double()
    assert torch.allclose(kept, expected, atol=1e-6)
    assert not torch.allclose(kept, trainer.gpt.get_parameter(name).double(), atol=1e-6)


def test_a_bpe_vocabulary_is_learned_and_stories_end(tmp_path: Path) -> None:
    text = tmp_path / "stories.txt"
    text.write_text("The cat sat on the mat.\n<|endoftext|>\nThe dog ran to the cat.\n<|endoftext|>\n" * 30)
    out = tmp_path / "out"
    assert main(train_flags(text, out, "--steps", "5", "--tokenizer", "bpe", "--vocab-size", "280")) == 0
    loaded = model.load(out)
    assert loaded.tokenizer.kind == "bpe"
    assert loaded.eos_token_id == loaded.bos_token_id == loaded.tokenizer.special_tokens["<|endoftext|>"]


def test_weights_are_kept_in_half_precision_where_that_costs_nothing(tmp_path: Path, text: Path) -> None:
    from safetensors.torch import load_file

    out = tmp_path / "out"
    main(train_flags(text, out, "--steps", "5"))
    assert {tensor.dtype for tensor in load_file(out / "model.safetensors").values()} == {torch.float16}
    assert json.loads((out / "config.json").read_text())["dtype"] == "float32"
    assert model.load(out).dtype == torch.float32


def test_snapshots_are_evenly_spaced_on_a_log_scale() -> None:
    steps = sorted(TrainSettings(steps=4000, snapshots=12).snapshot_steps())
    assert len(steps) == 12 and steps[0] == 0 and steps[-1] == 4000
    gaps = [math.log1p(b / 40) - math.log1p(a / 40) for a, b in itertools.pairwise(steps)]
    assert max(gaps) - min(gaps) < 0.01
    assert TrainSettings(steps=7, snapshots=12).snapshot_steps() <= set(range(8))
    assert TrainSettings(steps=7, snapshots=0).snapshot_steps() == set()


def test_snapshots_are_kept_and_open_as_models(tmp_path: Path, text: Path) -> None:
    out = tmp_path / "out"
    main(train_flags(text, out, "--steps", "9", "--snapshots", "4"))
    assert sorted(path.name for path in (out / "steps").iterdir()) == [
        f"{step:06d}.safetensors" for step in (0, 1, 4, 9)
    ]
    first, last = model.load(f"{out}@000000"), model.load(f"{out}@000009")
    assert first.name == "out@000000"
    assert not torch.equal(first.trace("the cat").logits, last.trace("the cat").logits)
    with pytest.raises(model.CheckpointError, match="steps/000003.safetensors: found no file"):
        model.load(f"{out}@000003")


def test_a_state_that_lacks_a_newer_setting_continues_with_its_default(tmp_path: Path, text: Path) -> None:
    out = tmp_path / "out"
    settings = TrainSettings(data=str(text), n_layer=1, n_head=2, n_embd=16, context_length=16, batch_size=4, steps=6)
    trainer = run_to(3, settings, out, resume=False)
    del trainer.progress["settings"]["snapshots"]
    trainer.state.save(out)
    with pytest.raises(SystemExit):
        main(["--out", str(out), "--resume", "--snapshots", "4"])
    assert main(["--out", str(out), "--resume", "--snapshots", "0"]) == 0


def test_a_finished_run_says_so(tmp_path: Path, text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    main(train_flags(text, out, "--steps", "1", "--n-layer", "1", "--n-head", "1", "--batch-size", "1"))
    with pytest.raises(SystemExit) as stopped:
        main(["--out", str(out), "--resume"])
    assert stopped.value.code == 2
    assert (
        f"the run in {out} has finished, so there is nothing to resume: choose another --out" in capsys.readouterr().err
    )
    card = (out / "README.md").read_text()
    assert "1 layer of 1 head, 16-dimensional embeddings" in card
    assert "1 step of 1 window in 0 minutes (" in card
    assert "Loss over 1 step of training" in (out / "loss.svg").read_text()


def test_nothing_is_overwritten_and_resume_continues_only_the_same_run(
    tmp_path: Path, text: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    settings = TrainSettings(data=str(text), n_layer=2, n_head=2, n_embd=16, context_length=16, batch_size=4, steps=9)
    run_to(3, settings, out, resume=False)
    for more, words in (
        (["--data", str(text)], "add --resume to continue"),
        (["--resume", "--n-embd", "32"], "--n-embd 32: the run to resume was started with 16"),
    ):
        with pytest.raises(SystemExit):
            main(["--out", str(out), *more])
        assert words in capsys.readouterr().err
    text.write_text(TRAINING_TEXT + "more")
    with pytest.raises(SystemExit):
        main(["--out", str(out), "--resume"])
    assert "its SHA-256 differs" in capsys.readouterr().err


def test_matrices_orthogonalised_together_take_the_step_that_torch_gives_each_of_them() -> None:
    torch.manual_seed(0)
    ours, theirs = GPT(tiny_config(n_layer=2, n_embd=32)), GPT(tiny_config(n_layer=2, n_embd=32))
    theirs.load_state_dict(ours.state_dict())
    matrices = {name for name, p in ours.h.named_parameters() if p.dim() == 2 and "c_attn" not in name}
    reference = torch.optim.Muon([p for name, p in theirs.h.named_parameters() if name in matrices], lr=0.1)
    optimizer = BlockMuon(ours, lr=0.1, weight_decay=0.1)
    for _ in range(3):
        for (_, one), (_, other) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
            one.grad = torch.randn_like(one)
            other.grad = one.grad.clone()
        optimizer.step()
        reference.step()
    for name in matrices:
        one, other = ours.h.get_parameter(name), theirs.h.get_parameter(name)
        assert torch.allclose(one, other, atol=0.01) and not torch.allclose(one, torch.zeros_like(one), atol=0.01)


@pytest.mark.parametrize("n_kv_head", [1, 2, 4])
def test_queries_keys_and_values_are_orthogonalised_separately(n_kv_head: int) -> None:
    torch.manual_seed(0)
    gpt = GPT(tiny_config(n_layer=1, n_embd=32, n_head=4, n_kv_head=n_kv_head))
    weight = gpt.h[0].attn.c_attn.weight
    sizes = [32, 8 * n_kv_head, 8 * n_kv_head]
    alone = [torch.nn.Parameter(part.clone()) for part in weight.detach().split(sizes)]
    reference = torch.optim.Muon(alone, lr=0.1)
    optimizer = BlockMuon(gpt, lr=0.1, weight_decay=0.1)
    for _ in range(3):
        weight.grad = torch.randn_like(weight)
        for part, gradient in zip(alone, weight.grad.split(sizes), strict=True):
            part.grad = gradient.clone()
        optimizer.step()
        reference.step()
    assert torch.allclose(weight, torch.cat(alone), atol=0.01)


def test_the_two_matrices_of_a_gated_mlp_are_orthogonalised_separately() -> None:
    torch.manual_seed(0)
    settings = TrainSettings(arch="llama", n_layer=1, n_head=4, n_embd=48, context_length=16)
    gpt = GPT(settings.config(20))
    weight = gpt.h[0].mlp.c_fc.weight
    alone = [torch.nn.Parameter(part.clone()) for part in weight.detach().chunk(2)]
    reference = torch.optim.Muon(alone, lr=0.1)
    optimizer = BlockMuon(gpt, lr=0.1, weight_decay=0.1)
    weight.grad = torch.randn_like(weight)
    for part, gradient in zip(alone, weight.grad.chunk(2), strict=True):
        part.grad = gradient.clone()
    optimizer.step()
    reference.step()
    assert torch.allclose(weight, torch.cat(alone), atol=0.01)


@pytest.mark.parametrize(("n_embd", "n_head"), [(16, 2), (64, 4), (96, 4), (144, 6), (768, 12)])
def test_both_architectures_have_as_many_weights_in_each_layer(n_embd: int, n_head: int) -> None:
    sizes = {"n_layer": 2, "n_head": n_head, "n_embd": n_embd, "context_length": 64}
    in_blocks = [
        sum(p.numel() for p in GPT(TrainSettings(arch=arch, **sizes).config(60)).h.parameters())
        for arch in ("gpt2", "llama")
    ]
    assert 0.88 < in_blocks[1] / in_blocks[0] <= 1


@pytest.mark.release
def test_a_trained_llama_opens_in_transformers(tmp_path: Path, text: Path) -> None:
    from transformers import AutoModelForCausalLM

    main([*train_flags(text, tmp_path / "out"), "--arch", "llama"])
    loaded = model.load(tmp_path / "out", dtype="float32")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "out", dtype=torch.float32)
    assert theirs.config.model_type == "llama"
    ids = torch.tensor([loaded.tokenizer.encode("the cat sat")])
    with torch.no_grad():
        assert torch.allclose(loaded.gpt(ids).logits, theirs(ids).logits, atol=1e-4)
    assert "A GPT of Llama's architecture" in (tmp_path / "out" / "README.md").read_text()


def test_attention_trains_in_float32_while_linear_layers_use_bfloat16(text: Path, tmp_path: Path) -> None:
    shape = {"n_layer": 1, "n_head": 2, "n_embd": 16, "context_length": 16, "batch_size": 4, "dropout": 0.0}
    trainer = Trainer(TrainSettings(data=str(text), autocast="bfloat16", device="cpu", **shape), tmp_path / "out")
    plain = Trainer(TrainSettings(data=str(text), autocast="float32", device="cpu", **shape), tmp_path / "out")
    seen: list[torch.dtype] = []
    trainer.gpt.h[0].attn.c_proj.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].dtype))
    assert trainer.step() == pytest.approx(plain.step(), abs=0.01)
    assert seen == [torch.float32]
