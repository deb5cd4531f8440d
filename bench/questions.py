"""The cost of a question in Ask, relative to plain forward passes over the same tokens.

    python -m bench.questions [--quick]

The knockout map removes each head in turn: without any shortcut, 48 heads would take 49 passes.
"""

import torch

from bench.harness import ROOT, Row, arguments, character_checkpoint, in_turn, open_for_bench, report
from model import LoadedModel
from model.lens.interventions.knockout import knockout
from model.lens.text_pass import TextPass

N_TOKENS = 256
BAR = 1.5


@torch.inference_mode()
def plain_pass(loaded: LoadedModel, ids: list[int]) -> None:
    loaded.gpt(torch.tensor([ids]))


def knockout_row(loaded: LoadedModel, rounds: int) -> Row:
    ids = torch.randint(loaded.config.vocab_size, (N_TOKENS,), generator=torch.Generator().manual_seed(0)).tolist()
    seconds = in_turn(
        {"plain": lambda: plain_pass(loaded, ids), "knockout": lambda: knockout(TextPass(loaded.gpt, ids))}, rounds
    )
    n_passes = loaded.config.n_layer * loaded.config.n_head + 1
    case = f"knockout map, {n_passes - 1} heads x {N_TOKENS} tokens, {loaded.name}"
    peers = {f"{n_passes} plain passes": n_passes * seconds["plain"]}
    return Row(case, "seconds", seconds["knockout"], "less", peers, BAR)


def main() -> None:
    rounds = 5 if arguments(__doc__ or "").quick else 15
    folders = [character_checkpoint(), ROOT / "checkpoints" / "stories-bpe"]
    report("questions", [knockout_row(open_for_bench(folder), rounds) for folder in folders if folder.is_dir()])


if __name__ == "__main__":
    main()
