"""Questions asked of a model: what each of its heads does."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ..loaded import LoadedModel
from ..tokenizer import token_text
from ..trace import take_weights

# How far back a head of each role looks, for a text whose second half repeats its first of ``length`` tokens.
# Elhage et al. 2021 and Olsson et al. 2022 name the roles and measure them so.
ROLES = {
    "previous_token": lambda length: 1,
    "duplicate_token": lambda length: length,  # the same token, seen before
    "induction": lambda length: length - 1,  # the token that followed it then
}

LEAST_CONTEXT = 4  # two tokens, repeated


@dataclass(frozen=True)
class RoleScores:
    """What every head does on random tokens that are repeated once.

    ``scores[role]`` ``(n_layer, n_head)`` is the mean attention weight from a token of the second half to the one that
    the role looks at; ``uniform`` is what a head that looks everywhere alike would score. ``first_loss`` and
    ``second_loss`` are nats per token of the two halves: random tokens can be foretold in the second alone, by copying.
    """

    scores: dict[str, Tensor]
    uniform: float
    first_loss: float
    second_loss: float

    def best(self, role: str) -> tuple[int, int, float]:
        """Layer and head of the highest score, and that score."""
        scores = self.scores[role]
        layer, head = divmod(int(scores.argmax()), scores.shape[1])
        return layer, head, float(scores[layer, head])

    def as_json(self) -> dict[str, Any]:
        """All of it as plain numbers, four digits after the point."""
        scores = {role: [[round(x, 4) for x in row] for row in scores.tolist()] for role, scores in self.scores.items()}
        losses = {name: round(getattr(self, name), 4) for name in ("uniform", "first_loss", "second_loss")}
        return scores | losses


def repeated_tokens(gpt: LoadedModel, n_texts: int, length: int, seed: int) -> Tensor:
    """``n_texts`` times ``length`` random tokens, each text written twice in a row: ``(n_texts, 2 * length)``.

    They are printable, and of a byte-level vocabulary merges: a byte that no text ever had alone has an embedding that
    was never trained, and tells nothing of the heads.
    """
    special = set(gpt.tokenizer.special_tokens.values())
    ids = [i for i in range(gpt.config.vocab_size) if i not in special and token_text(gpt.tokenizer, i).isprintable()]
    if gpt.tokenizer.kind == "bpe":
        ids = [i for i in ids if len(gpt.tokenizer.token_bytes(i)) > 1] or ids
    generator = torch.Generator().manual_seed(seed)
    places = torch.randint(len(ids), (n_texts, length), generator=generator)
    return torch.tensor(ids)[places].repeat(1, 2)


@torch.inference_mode()
def role_scores(gpt: LoadedModel, n_texts: int = 16, length: int = 64, seed: int = 0) -> RoleScores:
    """Score every head for every role; a short context allows fewer than ``length`` tokens."""
    length = min(length, gpt.config.context_length // 2)
    if length < 2:
        raise ValueError(
            f"at least two tokens must be repeated, in a context_length of {LEAST_CONTEXT}: found {length}"
        )
    n_layer, n_head = gpt.config.n_layer, gpt.config.n_head
    gpt.gpt.eval()
    queries = torch.arange(length, 2 * length)
    scores = {role: torch.zeros(n_layer, n_head) for role in ROLES}
    losses = torch.zeros(2 * length - 1)
    for text in repeated_tokens(gpt, n_texts, length, seed)[:, None].to(gpt.device):  # one by one: bounded memory
        forward = gpt.gpt(text, record=range(n_layer))
        attention = take_weights(forward.attention, range(n_layer)).cpu()
        for role, back in ROLES.items():
            scores[role] += attention[..., queries, queries - back(length)].mean(-1) / n_texts
        losses += F.cross_entropy(forward.logits[0, :-1].float(), text[0, 1:], reduction="none").cpu() / n_texts
    return RoleScores(
        scores,
        uniform=float((1 / (queries + 1)).mean()),
        first_loss=float(losses[: length - 1].mean()),
        second_loss=float(losses[length:].mean()),  # the first token of the second half comes as a surprise
    )
