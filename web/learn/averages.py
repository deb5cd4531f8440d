"""Rung 4 as data: averages of the past."""

import torch

from model import ladder
from model.ladder.terms import largest_difference, seeded

from ..serving.served_models import ServedModels
from .ask import Ask, check_sentence
from .sentence import read_sentence
from .terms import dot_terms

TOY = 3  # tokens of the toy example


def averages_of_the_past(served: ServedModels, ask: Ask) -> dict[str, object]:
    """The average of the past, three ways, and the toy product of Karpathy's lecture."""
    check_sentence(ask.sentence)
    if ask.lecture:
        x = seeded(1337, lambda: torch.randn(4, 8, 2))[0]
        data: dict[str, object] = {"words": [f"t{t}" for t in range(len(x))], "note": ""}
    else:
        sentence = read_sentence(served, ask)
        x, data = sentence.x, sentence.data
    by_loop = ladder.average_by_loop(x)
    by_matrix, by_softmax = ladder.average_by_matrix(x), ladder.average_by_softmax(x)
    weights = ladder.average_by_matrix(torch.eye(len(x)))
    return data | {
        "lecture": ask.lecture,
        "x": x.tolist(),
        "weights": weights.tolist(),
        "masked": ladder.mask_future(torch.zeros(len(x), len(x))).tolist(),
        "by_loop": by_loop.tolist(),
        "by_matrix": by_matrix.tolist(),
        "by_softmax": by_softmax.tolist(),
        "terms": dot_terms(weights, x.mT),
        "error": max(largest_difference(by_loop, by_matrix), largest_difference(by_loop, by_softmax)),
        "toy": toy(ask.toy),
    }


def toy(kind: str) -> dict[str, object]:
    """The product ``a b`` of the lecture's toy example, with ``a`` of ones, lower triangular, or with rows of sum 1."""
    ones = torch.ones(TOY, TOY)
    a = {"ones": ones, "tril": ones.tril(), "normalised": ladder.sum_normalise(ones.tril())}[kind]
    b = seeded(42, lambda: torch.randint(0, 10, (TOY, 2))).float()
    return {"kind": kind, "a": a.tolist(), "b": b.tolist(), "product": (a @ b).tolist(), "terms": dot_terms(a, b.mT)}
