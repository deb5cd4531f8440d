"""The tasks of rungs 9 to 11: functions whose docstrings are the tasks, and whose bodies are the solutions.

``check_NAME`` checks the function ``NAME``.
"""

import math
from typing import Any

import torch
from torch import Tensor

from model.ladder.block import block_by_ladder, gelu, layer_norm, linear, normalise
from model.ladder.induction import read_twice

from .cells import near, to_draw_with

# ---- 9. The rest of a block ------------------------------------------------------------------------------------------


def standardised(row: Tensor, eps: float) -> Tensor:
    """Apply layer norm to one row, without its learned factors: subtract the mean, and divide by the root of the
    variance plus ``eps``. The variance is the mean of the squares, here.
    """
    centred = row - row.mean()
    return centred / (centred.square().mean() + eps).sqrt()


def check_standardised() -> None:
    row = torch.tensor([0.43, 0.15, 0.89])
    assert near(standardised(row, 1e-5), layer_norm(row, torch.ones(3), torch.zeros(3))), "Mean 0, variance 1."
    assert near(standardised(torch.ones(3), 1e-5), torch.zeros(3)), "Without eps, this would divide by 0."


def my_gelu(x: Tensor) -> Tensor:
    """Compute GPT-2's GELU: x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³)))."""
    return x / 2 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def check_my_gelu() -> None:
    x = torch.linspace(-4, 4, 17)
    assert near(my_gelu(x), gelu(x)), "Mind the brackets: tanh takes the whole product."


def n_block_weights(C: int) -> int:
    """Count the weights of a block of width ``C``, all with biases: queries, keys and values, the output projection,
    an MLP four times as wide and back, and two layer norms, which each have a factor and a shift for every number.
    """
    return 3 * C * C + 3 * C + C * C + C + 8 * C * C + 5 * C + 4 * C


def check_n_block_weights(tensors: dict[str, Tensor]) -> None:
    assert n_block_weights(3) == sum(each.numel() for each in tensors.values()), "Compare with tensors, name by name."
    assert n_block_weights(768) == 7_087_872, "A block of GPT-2 has 7,087,872."


# ---- 10. The whole model ---------------------------------------------------------------------------------------------


def continued(gpt: Any, ids: list[int], n: int) -> list[int]:
    """Let the model write ``n`` more tokens, each the likeliest one. ``block_by_ladder(block, x).after`` is a layer's
    result, as in the cell above; only the last row of the last one counts.
    """
    ids = list(ids)
    for _ in range(n):
        x = gpt.wte(torch.tensor(ids)) + gpt.wpe.weight[: len(ids)]
        for block in gpt.h:
            x = block_by_ladder(block, x).after
        ids.append(int(linear(gpt.lm_head, normalise(gpt.ln_f, x[-1])).argmax()))
    return ids


def check_continued(gpt: Any, ids: list[int]) -> None:
    start = ids[: max(1, min(len(ids), len(gpt.wpe.weight) - 3))]
    written = continued(gpt, start, 3)
    assert written is not None and written[:-3] == start, "Return the old ids and the new ones."
    # A model gives the same logits if it reads all again: each new token is the likeliest after those before it.
    assert continued(gpt, written[:-1], 1) == written and continued(gpt, written[:-2], 1) == written[:-1]
    x = gpt.wte(torch.tensor(start)) + gpt.wpe.weight[: len(start)]
    for block in gpt.h:
        x = block_by_ladder(block, x).after
    assert written[-3] == int(linear(gpt.lm_head, normalise(gpt.ln_f, x))[-1].argmax()), "Read the last row."


def with_temperature(logits: Tensor, temperature: float) -> Tensor:
    """Turn logits into probabilities at a temperature: divide by it before the softmax."""
    return (logits / temperature).softmax(dim=-1)


def check_with_temperature(logits: Tensor) -> None:
    for temperature in (0.5, 1.0, 2.0):
        assert near(with_temperature(logits, temperature), to_draw_with(logits, temperature, 0, 1.0)), temperature


def among_the_best(p: Tensor, k: int) -> Tensor:
    """Keep the ``k`` largest probabilities (top-k), and enlarge them so that they add up to 1; the rest becomes 0."""
    values, places = p.topk(k)
    return torch.zeros_like(p).scatter(0, places, values / values.sum())


def check_among_the_best() -> None:
    p = torch.tensor([0.1, 0.4, 0.2, 0.3])
    assert near(among_the_best(p, 2), torch.tensor([0.0, 0.5714, 0.0, 0.4286])), "0.4 and 0.3 are kept: divide by 0.7."
    assert near(among_the_best(p, 4), p), "With all of them nothing changes."


# ---- 11. Induction ---------------------------------------------------------------------------------------------------


def what_followed(ids: list[int], place: int) -> list[int]:
    """Find where an induction head may look from ``place``: just after each earlier occurrence of the same token.
    The list is empty if it has not occurred before.
    """
    return [i + 1 for i in range(place) if ids[i] == ids[place]]


def check_what_followed() -> None:
    ids = [7, 3, 5, 8, 7]
    assert what_followed(ids, 4) == [1], "After the first 7 came 3, which is token 1."
    assert what_followed([1, 2, 1, 4, 1], 4) == [1, 3], "Every earlier occurrence counts."
    assert what_followed(ids, 2) == [], "5 has not occurred before."


def previous_token_score(weights: Tensor) -> float:
    """Measure how much of a head's weight goes to the token just before: the mean over all tokens but the first.
    ``weights`` ``(T, T)`` has a row for each token that looks.
    """
    return float(weights.diagonal(offset=-1).mean())


def check_previous_token_score() -> None:
    assert near(previous_token_score(torch.eye(5).roll(1, dims=0)), 1.0), "This head looks nowhere else."
    even = torch.ones(3, 3).tril() / torch.tensor([[1.0], [2.0], [3.0]])
    assert near(previous_token_score(even), 5 / 12), "Half and a third: their mean is 5/12."


def saved_by_repetition(gpt: Any, phrase: list[int]) -> float:
    """Measure how much less surprised the model is when it reads the phrase again: the mean loss of the phrase minus
    that of its repetition, from ``read_twice(gpt, phrase)``, which the last cell uses.
    """
    read = read_twice(gpt, phrase)
    return read.first_loss - read.second_loss


def check_saved_by_repetition(gpt: Any, phrase: list[int]) -> None:
    losses, n = read_twice(gpt, phrase).losses, len(phrase)
    expected = losses[: n - 1].mean() - losses[n:].mean()
    assert near(saved_by_repetition(gpt, phrase), expected), "first_loss and second_loss are means already."
