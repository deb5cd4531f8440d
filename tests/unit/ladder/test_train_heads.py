"""The heads that the browser trains on rungs 6 and 8: torch gives the numbers that ``tests/js/learn`` compares with.

``PYTHONPATH=.:tests python tests/unit/ladder/test_train_heads.py`` writes the fixture again.
"""

import json
from typing import Any

import pytest
import torch

from helpers.files import ROOT

FIXTURE = ROOT / "tests" / "fixtures" / "trained_heads.json"
SCALE, JOBS, ANSWERS = 0.5, 2, 3  # head_dim is 4
EXAMPLES = [
    {"query": 2, "keys": [0, 1, 2], "answers": [0, 2]},
    {"query": 1, "keys": [3, 0, 0, 4], "answers": [2, 1]},
    {"query": 4, "keys": [2, 2, 1], "answers": [1, 0]},
]


def trained_heads() -> dict[str, Any]:
    """Two heads on three examples: the loss, its gradient by every matrix, and the weights of the first example."""
    draw = torch.Generator().manual_seed(1)
    tokens = torch.randn(5, 3, dtype=torch.float64, generator=draw)
    columns = {"query": 4, "key": 4, "value": JOBS * ANSWERS}
    heads = [
        {role: torch.randn(3, n, dtype=torch.float64, generator=draw).requires_grad_() for role, n in columns.items()}
        for _ in range(2)
    ]
    losses, weights = [], []
    for example in EXAMPLES:
        logits = torch.zeros(JOBS * ANSWERS, dtype=torch.float64)
        for head in heads:
            query, keys = tokens[example["query"]] @ head["query"], tokens[example["keys"]] @ head["key"]
            weights.append(torch.softmax(SCALE * keys @ query, 0))
            logits = logits + weights[-1] @ (tokens[example["keys"]] @ head["value"])
        losses.append(torch.nn.functional.cross_entropy(logits.view(JOBS, ANSWERS), torch.tensor(example["answers"])))
    loss = torch.stack(losses).mean()
    loss.backward()
    return {
        "tokens": tokens.tolist(),
        "heads": [{role: matrix.flatten().tolist() for role, matrix in head.items()} for head in heads],
        "loss": loss.item(),
        "gradients": [{role: matrix.grad.flatten().tolist() for role, matrix in head.items()} for head in heads],
        "weights": [row.tolist() for row in weights[:2]],
    }


def flat(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [number for name in sorted(value) for number in flat(value[name])]
    return [number for item in value for number in flat(item)] if isinstance(value, list) else [value]


def test_the_numbers_that_the_browser_is_compared_with_are_torch_s() -> None:
    assert flat(json.loads(FIXTURE.read_text())) == pytest.approx(flat(trained_heads()), abs=1e-12)


if __name__ == "__main__":
    FIXTURE.write_text(json.dumps(trained_heads()) + "\n")
