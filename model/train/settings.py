"""The settings of a training run: a dataclass with one command-line flag per field."""

import argparse
from dataclasses import dataclass, field, fields, replace
from typing import TypeVar

from ..config import GPTConfig, RotaryConfig, check_int, is_number

ARCHITECTURES = ("gpt2", "llama")
Value = TypeVar("Value", int, float, str)


def setting(default: Value, help: str) -> Value:
    """A field of ``TrainSettings`` with the help text of its flag."""
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """How a model is trained. Raises ``ValueError`` for a value out of range."""

    data: str = setting("", "text file; each document may be followed by a line <|endoftext|>")
    validation: str = setting("", "text file to validate on (default: the last tenth of the data, held out)")
    tokenizer: str = setting("char", "char: one token per character; bpe: byte-level BPE, learned from the data")
    vocab_size: int = setting(4096, "number of tokens in the BPE vocabulary")
    arch: str = setting("gpt2", "gpt2, or llama: rotary positions, RMSNorm, a gated MLP, and no biases")
    n_layer: int = setting(6, "number of layers")
    n_head: int = setting(8, "number of heads in each layer")
    n_embd: int = setting(256, "width of the residual stream")
    context_length: int = setting(256, "number of tokens that the model reads at once")
    dropout: float = setting(0.2, "dropout on the outputs of attention and MLP")
    embd_dropout: float = setting(0.0, "dropout on the sum of token and position embeddings")
    attn_dropout: float = setting(0.0, "dropout on the attention weights (slower)")
    steps: int = setting(2400, "number of optimizer steps")
    seconds: float = setting(0.0, "end after this many seconds, with a schedule based on the clock; 0: no limit")
    batch_size: int = setting(32, "windows per step")
    repeated: float = setting(0.0, "fraction of windows that hold repeated random tokens, which teaches heads to copy")
    muon_lr: float = setting(0.015, "learning rate of Muon, for the matrices inside the blocks")
    adamw_lr: float = setting(3e-3, "learning rate of AdamW, for embeddings, biases and norms")
    weight_decay: float = setting(0.1, "weight decay of the matrices inside the blocks")
    embd_decay: float = setting(0.1, "weight decay of the embeddings")
    average: float = setting(0.0, "decay of a moving average of the weights, to validate and keep instead; 0: none")
    warmup: int = setting(50, "steps of linear learning rate warm-up")
    decay_from: float = setting(0.3, "fraction of the steps after which the learning rate falls linearly to 0")
    eval_every: int = setting(200, "steps between validations, each on the whole validation split")
    sample_every: int = setting(400, "steps between printed samples; 0: no samples")
    save_every: int = setting(200, "steps between saves of the state that --resume continues from")
    snapshots: int = setting(0, "number of steps whose weights are kept as NAME@STEP, log-spaced from 0 to the last")
    prompt: str = setting("", "prompt of the printed samples (default: the end-of-text token or a line break)")
    seed: int = setting(1337, "seed for the initial weights, the batches and dropout")
    device: str = setting("auto", "auto, cpu, cuda, ...")
    autocast: str = setting("auto", "precision of matrix products: auto, bfloat16 or float32")
    title: str = setting("", "title of the model card (default: the name of the folder)")
    data_note: str = setting("", "for the model card: what the data is, its source and its licence")
    recipe_note: str = setting("", "for the model card: what was tried, what helped and what did not")
    limits: str = setting("", "for the model card: what the model cannot do")
    license: str = setting("", "for the model card: licence of the weights, as a Hugging Face licence id")
    language: str = setting("en", "for the model card: language of the data")
    dataset: str = setting("", "for the model card: Hugging Face ids of the data, separated by commas")

    def __post_init__(self) -> None:
        if self.arch not in ARCHITECTURES:
            raise ValueError(f"arch must be 'gpt2' or 'llama', found {self.arch!r}")
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
        if not is_number(self.seconds) or not 0 <= self.seconds <= 10**9:
            raise ValueError(f"seconds must be at least 0, found {self.seconds!r}")
        if not is_number(self.repeated) or not 0 <= self.repeated <= 1:
            raise ValueError(f"repeated must be from 0 to 1, found {self.repeated!r}")
        for name in ("average", "decay_from"):
            if not is_number(getattr(self, name)) or not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 0 and below 1, found {getattr(self, name)!r}")

    def config(self, vocab_size: int) -> GPTConfig:
        """The config of the model to train, with a vocabulary of ``vocab_size`` tokens.

        A gated MLP has three matrices for two, so Llama's are two thirds as wide: both have as many weights.
        """
        gpt2 = GPTConfig(
            n_layer=self.n_layer,
            n_head=self.n_head,
            n_embd=self.n_embd,
            vocab_size=vocab_size,
            context_length=self.context_length,
            embd_pdrop=self.embd_dropout,
            attn_pdrop=self.attn_dropout,
            resid_pdrop=self.dropout,
        )
        if self.arch == "gpt2":
            return gpt2
        return replace(
            gpt2,
            n_inner=max(8, gpt2.inner_dim * 2 // 3 // 8 * 8),
            rotary=RotaryConfig(n_dim=gpt2.head_dim),
            norm="RMSNorm",
            activation_function="silu",
            gated_mlp=True,
            qkv_bias=False,
            attn_proj_bias=False,
            mlp_bias=False,
        )

    def snapshot_steps(self) -> set[int]:
        """The steps whose weights are kept: from 0 to the last, evenly spaced in log(1 + step / log_from)."""
        if self.snapshots < 2:
            return {self.steps} if self.snapshots else set()
        return {round(place) for place in log_spaced(self.snapshots, snapshots_log_from(self.steps), self.steps)}

    def learning_rate(self, step: int, done: float) -> float:
        """The factor on both learning rates at ``step``, counted from 0: warm-up, plateau, linear decay to 0.

        ``done`` is the completed fraction of the run, from 0 to 1.
        """
        decay = (1 - done) / (1 - self.decay_from)
        return max(0.0, min(1.0, decay, (step + 1) / (self.warmup + 1)))


def log_spaced(count: int, log_from: float, last: float) -> list[float]:
    """``count`` numbers from 0 to ``last``, evenly spaced in log(1 + number / log_from)."""
    fractions = (i / (count - 1) for i in range(count))
    return [log_from * ((1 + last / log_from) ** fraction - 1) for fraction in fractions]


def snapshots_log_from(steps: int) -> int:
    """The step after which the spacing of the snapshots becomes logarithmic: no head has formed before it."""
    return max(1, steps // 100)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add a flag per setting. A flag that is not given is absent from the result, which --resume relies on."""
    for row in fields(TrainSettings):
        help = row.metadata["help"] + (f" (default: {row.default})" if row.default != "" else "")
        name = "--" + row.name.replace("_", "-")
        parser.add_argument(name, type=row.type, default=argparse.SUPPRESS, help=help.replace("%", "%%"))
