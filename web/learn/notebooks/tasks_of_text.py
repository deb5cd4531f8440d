"""The tasks of rungs 1 to 3: functions whose docstrings are the tasks, and whose bodies are the solutions.

``check_NAME`` checks the function ``NAME``.
"""

import math
from collections import Counter
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import functional as F

from model.ladder.text import CharacterTokenizer, sliding_windows

from .cells import near

# ---- 1. Text to tokens -----------------------------------------------------------------------------------------------


def character_ids(text: str, characters: str) -> list[int]:
    """Give each character of a text its id: its place among the sorted characters of an alphabet."""
    in_order = sorted(set(characters))
    return [in_order.index(character) for character in text]


def check_character_ids(alphabet: str) -> None:
    assert character_ids("Hi there!", alphabet) == [20, 47, 1, 58, 46, 43, 56, 43, 2], "Sort the alphabet first."
    assert character_ids("cab", "abcab") == [2, 0, 1], "A character that occurs twice has one id only."


def most_frequent_pair(pieces: list[str]) -> tuple[str, str]:
    """Find the pair of neighbours that occurs most often in a list of pieces: the pair that byte pairs merge first."""
    return Counter(pairwise(pieces)).most_common(1)[0][0]


def check_most_frequent_pair() -> None:
    assert most_frequent_pair(list("aaabdaaabac")) == ("a", "a"), "“aa” occurs four times, if overlaps count."
    assert most_frequent_pair(["th", "e", " ", "th", "e"]) == ("th", "e"), "A piece may have several letters."


def merge_in_list(pieces: list[str], pair: tuple[str, str]) -> list[str]:
    """Replace each occurrence of a pair with one piece, from left to right. No piece belongs to two merges."""
    merged: list[str] = []
    place = 0
    while place < len(pieces):
        is_pair = tuple(pieces[place : place + 2]) == pair
        merged.append("".join(pieces[place : place + 1 + is_pair]))
        place += 1 + is_pair
    return merged


def check_merge_in_list() -> None:
    assert merge_in_list(list("aaabdaaabac"), ("a", "a")) == ["aa", "a", "b", "d", "aa", "a", "b", "a", "c"]
    assert merge_in_list(["aa", "a", "b"], ("a", "b")) == ["aa", "ab"], "A pair may stand at the end."


# ---- 2. Windows and vectors ------------------------------------------------------------------------------------------


def inputs_and_targets(ids: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Cut ids into windows of ``length``, one starting at each id, with their targets: the windows one id later."""
    windows = torch.stack([ids[start : start + length + 1] for start in range(len(ids) - length)])
    return windows[:, :-1], windows[:, 1:]


def check_inputs_and_targets() -> None:
    made = inputs_and_targets(torch.arange(7), 3)
    assert made is not None, "Return two tensors."
    inputs, targets = sliding_windows(torch.arange(7), 3, 1)
    assert made[0].tolist() == inputs.tolist(), "The first window has the ids 0, 1 and 2, and the last one 3, 4 and 5."
    assert made[1].tolist() == targets.tolist(), "The targets of 0, 1, 2 are 1, 2, 3."


def n_windows(n_ids: int, length: int, stride: int) -> int:
    """Count the windows of ``length`` in ``n_ids`` ids, one every ``stride`` ids, without making them. Each needs
    ``length + 1`` ids, because of its last target.
    """
    return (n_ids - length - 1) // stride + 1


def check_n_windows() -> None:
    for n_ids, length, stride in [(7, 3, 1), (7, 3, 3), (50, 4, 2), (5, 4, 9)]:
        inputs, _ = sliding_windows(torch.arange(n_ids), length, stride)
        assert n_windows(n_ids, length, stride) == len(inputs), f"{n_ids} ids hold {len(inputs)} windows."


def embed_by_product(table: Tensor, ids: Tensor) -> Tensor:
    """Pick the rows of an embedding table without an index: as a product with a matrix that holds one 1 per row."""
    return F.one_hot(ids, len(table)).float() @ table


def check_embed_by_product() -> None:
    table, ids = torch.arange(15.0).view(5, 3), torch.tensor([4, 0, 4])
    assert near(embed_by_product(table, ids), table[ids]), "Row t of the matrix has its 1 in the column of id t."


# ---- 3. The bigram model ---------------------------------------------------------------------------------------------


def surprise(p: float) -> float:
    """Compute the surprise at something that had the probability ``p``, in nats."""
    return -math.log(p)


def check_surprise() -> None:
    assert near(surprise(1 / 2), 0.6931), "It is −ln p, with the natural logarithm."
    assert near(surprise(1 / 65), 4.1744)


def counted_probabilities(text: str, character: str) -> dict[str, float]:
    """Count what follows a character in a text, as probabilities: the best row that a bigram table can have for it."""
    followers = Counter(after for before, after in pairwise(text) if before == character)
    return {after: count / followers.total() for after, count in followers.items()}


def check_counted_probabilities() -> None:
    assert counted_probabilities("banana", "a") == {"n": 1.0}, "The last a has no follower."
    assert counted_probabilities("the cat sat on the mat", "t") == {"h": 0.5, " ": 0.5}
    # Nobody has to train for this: a trained table only comes near it.


def mean_surprise(text: str, table: Tensor) -> float:
    """Compute the loss of a bigram table on a text: the mean surprise at each character after the first.
    ``table[a][b]`` is the probability of the character with the id ``b`` after ``a``; ids are as in rung 1.
    """
    ids = torch.tensor(CharacterTokenizer(text).encode(text))
    return float(-table[ids[:-1], ids[1:]].log().mean())


def check_mean_surprise() -> None:
    assert near(mean_surprise("abba", torch.full((2, 2), 0.5)), 0.6931), "Even chances: ln 2 each time."
    table = torch.tensor([[0.2, 0.8], [0.5, 0.5]])
    assert near(mean_surprise("abba", table), (-math.log(0.8) - 2 * math.log(0.5)) / 3), "The row is that of the first."
