"""The settings of a training run: one dataclass, one flag for each field."""

import argparse
from dataclasses import dataclass, field, fields
from typing import Any

from ..config import GPTConfig, check_int, is_number


def flag(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """How a model is trained; raises ``ValueError`` for a value that cannot work."""

    data: str = flag("", "text file; documents may each be followed by a line <|endoftext|>")
    validation: str = flag("", "text file held out (default: the last tenth of the data)")
    tokenizer: str = flag("char", "char: one token per character; bpe: a byte-level vocabulary learned from the data")
    vocab_size: int = flag(4096, "tokens of the BPE vocabulary")
    n_layer: int = flag(6, "layers")
    n_head: int = flag(8, "heads in each layer")
    n_embd: int = flag(256, "width of the residual stream")
    context_length: int = flag(256, "tokens the model can look back on")
    dropout: float = flag(0.2, "dropout on the two residual branches")
    embd_dropout: float = flag(0.0, "dropout on the sum of token and position embeddings")
    attn_dropout: float = flag(0.0, "dropout on the attention weights (slower)")
    steps: int = flag(2400, "optimizer steps")
    batch_size: int = flag(32, "windows per step")
    repeated: float = flag(0.0, "part of the windows that are random tokens, repeated: copying pays, heads learn it")
    muon_lr: float = flag(0.015, "learning rate of Muon, for the matrices inside the blocks")
    adamw_lr: float = flag(3e-3, "learning rate of AdamW, for embeddings, biases and norms")
    weight_decay: float = flag(0.1, "weight decay of the matrices inside the blocks")
    embd_decay: float = flag(0.1, "weight decay of the embeddings")
    average: float = flag(0.0, "decay of an exponential average of the weights, which is then what counts; 0 for none")
    warmup: int = flag(50, "steps of linear warm-up")
    decay_from: float = flag(0.3, "part of the steps after which the learning rate falls linearly to 0")
    eval_every: int = flag(200, "steps between validations, each over the whole split")
    sample_every: int = flag(400, "steps between printed samples; 0 for none")
    save_every: int = flag(200, "steps between saves of the state that --resume goes on from")
    snapshots: int = flag(0, "weights kept on the way, from step 0 to the last evenly on a log scale: NAME@STEP")
    prompt: str = flag("", "what the printed samples begin with (default: the end-of-text token or a line break)")
    seed: int = flag(1337, "seed of the weights, the batches and dropout")
    device: str = flag("auto", "auto, cpu, cuda, ...")
    autocast: str = flag("auto", "precision of the matrix products: auto, bfloat16 or float32")
    title: str = flag("", "name on the model card (default: the folder's)")
    data_note: str = flag("", "sentence on the model card: what the data is, where from, under which licence")
    recipe_note: str = flag("", "sentences on the model card: what was tried, what helped and what did not")
    limits: str = flag("", "sentence on the model card: what the model cannot do")
    license: str = flag("", "licence of the weights, a Hugging Face licence id")
    language: str = flag("en", "language of the data, for the model card")
    dataset: str = flag("", "Hugging Face ids of the data, separated by commas, for the model card")

    def __post_init__(self) -> None:
        if self.tokenizer not in ("char", "bpe"):
            raise ValueError(f"tokenizer must be 'char' or 'bpe', found {self.tokenizer!r}")
        if self.autocast not in ("auto", "bfloat16", "float32"):
            raise ValueError(f"autocast must be 'auto', 'bfloat16' or 'float32', found {self.autocast!r}")
        for name in ("steps", "batch_size", "eval_every", "save_every"):
            check_int(name, getattr(self, name), 10**9)
        for name in ("warmup", "sample_every", "snapshots"):
            check_int(name, getattr(self, name), 10**9, least=0)
        check_int("seed", self.seed, 2**63 - 1, least=0)
        for name in ("muon_lr", "adamw_lr", "weight_decay", "embd_decay"):
            if not is_number(getattr(self, name)) or not 0 <= getattr(self, name) < 10:
                raise ValueError(f"{name} must be at least 0 and below 10, found {getattr(self, name)!r}")
        if not is_number(self.repeated) or not 0 <= self.repeated <= 1:
            raise ValueError(f"repeated must be from 0 to 1, found {self.repeated!r}")
        for name in ("average", "decay_from"):
            if not is_number(getattr(self, name)) or not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 0 and below 1, found {getattr(self, name)!r}")

    def config(self, vocab_size: int) -> GPTConfig:
        """The model to train, with a vocabulary of ``vocab_size`` tokens."""
        return GPTConfig(
            n_layer=self.n_layer,
            n_head=self.n_head,
            n_embd=self.n_embd,
            vocab_size=vocab_size,
            context_length=self.context_length,
            embd_pdrop=self.embd_dropout,
            attn_pdrop=self.attn_dropout,
            resid_pdrop=self.dropout,
        )

    def snapshot_steps(self) -> set[int]:
        """The steps after which weights are kept: from 0 to the last, evenly in log(1 + step / knee)."""
        if self.snapshots < 2:
            return {self.steps} if self.snapshots else set()
        knee = snapshot_knee(self.steps)
        parts = (i / (self.snapshots - 1) for i in range(self.snapshots))
        return {round(knee * ((1 + self.steps / knee) ** part - 1)) for part in parts}

    def learning_rate(self, step: int) -> float:
        """The factor on both learning rates at ``step``, counted from 0: warm up, stay, fall linearly to 0."""
        start = self.decay_from * self.steps
        decay = min(1.0, (self.steps - step) / (self.steps - start))
        return min(decay, (step + 1) / (self.warmup + 1))


def snapshot_knee(steps: int) -> int:
    """The step around which the log scale of the snapshots begins: below it nothing has formed yet."""
    return max(1, steps // 100)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """One flag for each setting. A flag that is not given is absent from the result, so that --resume can tell."""
    for setting in fields(TrainSettings):
        help = setting.metadata["help"] + (f" (default: {setting.default})" if setting.default != "" else "")
        name = "--" + setting.name.replace("_", "-")
        parser.add_argument(name, type=setting.type, default=argparse.SUPPRESS, help=help.replace("%", "%%"))
