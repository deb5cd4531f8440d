"""How long a run over many texts takes that keeps the activations of one site, compared with TransformerLens.

    python -m bench.lab [--quick]

Both run 200 texts of 24 tokens in one batch, in float32, on the same weights and with the same torch, and keep all
logits. They take turns, and the fastest of their runs counts. TransformerLens is installed once, in an environment of
its own.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor

import model
from bench.harness import ROOT, Row, arguments, in_turn, need_packages, report
from bench.peers.transformer_bridge import run_with_cache
from model.lens.interventions.run import Run

N_TEXTS, N_TOKENS = 200, 24
SITE = "blocks.3.hook_resid_post"
FOLDER = ROOT / "checkpoints" / "stories-bpe"
MAX_DIFFERENCE = 1e-3  # of logits and activations
BAR = 1.0


def texts(vocab_size: int) -> Tensor:
    """Random token ids ``(N_TEXTS, N_TOKENS)``."""
    return torch.randint(vocab_size, (N_TEXTS, N_TOKENS), generator=torch.Generator().manual_seed(0))


def our_run(folder: Path, site: str) -> Callable[[], Run]:
    loaded = model.load(folder, device="cpu", dtype="float32")
    ids = texts(loaded.config.vocab_size)
    return lambda: loaded.run(ids, names=site)


def run_row(case: str, ours: Callable[[], Run], peers: Mapping[str, Callable[[], None]], rounds: int) -> Row:
    """Seconds of the fastest run."""
    seconds = in_turn({"ours": ours, **peers}, rounds, of=min)
    return Row(case, "seconds", seconds.pop("ours"), "less", seconds, BAR)


def main() -> None:
    rounds = 2 if arguments(__doc__ or "").quick else 5
    need_packages("transformers")
    ours = our_run(FOLDER, SITE)
    found = ours()
    with run_with_cache(FOLDER, found.ids, SITE) as (theirs, logits, activations):
        for one, other in ((found.logits, logits), (found.cache[SITE], activations)):
            assert (one - other).abs().max() < MAX_DIFFERENCE, "the numbers differ"
        case = f"{N_TEXTS} texts x {N_TOKENS} tokens, one site, {FOLDER.name}"
        report("lab", [run_row(case, ours, {"TransformerLens": theirs}, rounds)])


if __name__ == "__main__":
    main()
