"""The openings of models."""

import torch

from helpers.models import scripted_model, tiny_bpe
from model.lens.opening import LEAST_REAL, MOST_CERTAIN, cut_at_open_choice
from web.runs.openings import opening_prompt
from web.services import Services
from web.settings import OPENING_PROMPTS


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
    certain = (MOST_CERTAIN + 0.05, LEAST_REAL + 0.01, LEAST_REAL + 0.01)
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
        real = int((probabilities >= LEAST_REAL).sum())
        whole = len(opening.ids) == loaded.config.context_length
        assert whole or (real in (3, 4) and float(probabilities.max()) <= MOST_CERTAIN)
