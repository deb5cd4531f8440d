"""The openings of models."""

import json
import shutil
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from helpers.models import scripted_model, tiny_bpe
from helpers.serve_once import ROOT
from model import load
from model.lens.opening import MAX_CERTAINTY, MIN_REAL, copied_tokens, cut_at_open_choice
from web.page.find_opening import main
from web.runs.openings import (
    DECLARED,
    OPENING_PROMPTS,
    OPENING_TOKENS,
    OPENS_ON,
    Openings,
    opening_prompt,
    read_declared,
    write_declared,
)
from web.services import Services


def test_an_opening_of_what_the_model_knows(services: Services) -> None:
    tokenizer = tiny_bpe()
    for known in ("Once upon a time", "ROMEO:"):
        ids = tokenizer.encode(known)
        loaded = scripted_model(ids[1:] + [ids[0]] * 40, tokenizer)
        assert opening_prompt(loaded) == (known, ids)
    for name in ("tiny", "other"):  # random ones know nothing
        assert opening_prompt(services.served.models[name])[0] == OPENING_PROMPTS[0]


def logits(*rows: tuple[float, ...]) -> torch.Tensor:
    """The logits of these probabilities, the rest spread over many tokens."""
    probabilities = torch.zeros(len(rows), 200)
    for row, given in zip(probabilities, rows, strict=True):
        row[: len(given)] = torch.tensor(given)
        row[len(given) :] = (1 - sum(given)) / (200 - len(given))
    return probabilities.log()


def test_a_text_ends_where_the_last_token_had_alternatives() -> None:
    sure, three, four, five = (0.97,), (0.5, 0.3, 0.1), (0.3, 0.3, 0.2, 0.1), (0.2,) * 5
    certain = (MAX_CERTAINTY + 0.05, MIN_REAL + 0.01, MIN_REAL + 0.01)
    # Row i is what token i + 1 was drawn from; the last row is what would come next.
    assert cut_at_open_choice(logits(sure, three, sure, sure), first=1) == 3
    assert cut_at_open_choice(logits(three, four, sure, five), first=1) == 3
    assert cut_at_open_choice(logits(three, sure, sure, four), first=1) == 2
    assert cut_at_open_choice(logits(sure, sure, certain, five), first=1) == 4  # nowhere: all of it
    assert cut_at_open_choice(logits(three, sure, sure, sure), first=3) == 4  # not before the first
    assert cut_at_open_choice(logits(sure, sure), first=5) == 2


def test_openings_end_where_something_was_open(services: Services) -> None:
    for name, opening in services.openings.written.entries.items():
        loaded = services.served.models[name]
        probabilities = loaded.trace(opening.ids).logits[-2].softmax(-1)
        real = int((probabilities >= MIN_REAL).sum())
        whole = len(opening.ids) == loaded.config.context_length // 2  # the rest is left to continue it
        assert whole or (real in (3, 4) and float(probabilities.max()) <= MAX_CERTAINTY)


GOOD = {"prompt": "ROMEO:", "tokens": 3, "head": [1, 2], "label": "a play"}


def declare(folder: Path, changes: dict[str, Any]) -> Path:
    folder.mkdir()
    (folder / DECLARED).write_text(json.dumps(GOOD | changes))
    return folder


def test_a_declared_opening(services: Services, tmp_path: Path) -> None:
    loaded = services.served.models["tiny"]
    opening = write_declared(loaded, read_declared(declare(tmp_path / "good", {})))
    assert opening and opening.head == (1, 2) and opening.is_declared
    steps = loaded.generate("ROMEO:", 3, temperature=0.8, seed=1)
    assert opening.ids == loaded.parse_prompt("ROMEO:") + [step.token_id for step in steps]
    assert opening.settings["prompt"] == "ROMEO:" and opening.settings["max_new_tokens"] == OPENING_TOKENS
    assert read_declared(tmp_path) is None and read_declared("user/name") is None


@pytest.mark.parametrize(
    "changes",
    [
        {"tokens": 0},
        {"tokens": 10**6},
        {"head": [1]},
        {"head": [-1, 0]},
        {"head": [99, 0]},
        {"prompt": ""},
        {"prompt": 1},
        {"temperature": -1},
        {"seed": 1.5},
        {"label": "x" * 100},
        {"other": 1},
    ],
    ids=str,
)
def test_a_declared_opening_that_cannot_be_used(
    services: Services, tmp_path: Path, caplog: pytest.LogCaptureFixture, changes: dict[str, Any]
) -> None:
    """The reason is logged, and a text is written as for a model that declares none."""
    loaded = services.served.models["tiny"]
    assert write_declared(loaded, read_declared(declare(tmp_path / "bad", changes))) is None
    assert next(iter(changes)) in caplog.text and DECLARED in caplog.text


def test_the_page_opens_on_stories_where_they_are_served(services: Services) -> None:
    served: Any = SimpleNamespace(models={}, sources={"loading": 1}, ready=Future())
    openings = Openings(served, services.runs)
    assert openings.first == "loading"
    served.ready.set_result(None)
    assert openings.first is None
    served.models = {"mine": 1, "other": 2}
    assert openings.first == "mine"
    served.models |= {OPENS_ON: 3}
    assert openings.first == OPENS_ON


def test_copied_tokens() -> None:
    """Of a text a b c a b, the head that copies looks from the second a at the first b."""
    ids = [5, 6, 7, 5, 6]
    attention = torch.zeros(1, 2, 5, 5)
    attention[:, :, :, 0] = 1
    attention[0, :, 3] = torch.tensor([0.2, 0.8, 0, 0, 0])
    logits = torch.zeros(5, 8)
    logits[3, 6] = 20.0
    (copied,) = copied_tokens(attention, logits, ids, torch.tensor([[0.5, 0.95]]))
    assert (copied.head, copied.query, copied.key) == ((0, 1), 3, 1)
    assert copied.weight == pytest.approx(0.8) and copied.probability > 0.99
    attention[0, :, 3] = torch.tensor([0.45, 0.55, 0, 0, 0])
    assert copied_tokens(attention, logits, ids, torch.ones(1, 2)) == []


def test_an_opening_is_found_and_declared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The shipped model of the induction head is one for which such texts are found."""
    folder = tmp_path / "mine"
    shutil.copytree(ROOT / "checkpoints" / "two-layer-steps", folder, ignore=shutil.ignore_patterns("steps"))
    assert main([str(folder), "--seeds", "3", "--tokens", "60", "--write", "1", "--label", "mine"]) == 0
    assert " 1  weight 0." in capsys.readouterr().out
    read_declared.cache_clear()
    declared = read_declared(folder)
    assert declared and declared.label == "mine" and declared.prompt == "Once upon a time"
    loaded = load(folder)
    opening = write_declared(loaded, declared)
    assert opening
    weights = loaded.trace(opening.ids).attention[opening.head][-2]
    assert weights.max() >= 0.6 and opening.ids[int(weights.argmax())] == opening.ids[-1]
