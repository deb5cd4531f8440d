"""One pass over a text gives what a trace gives, for the whole text and for every beginning of it."""

import pytest
import torch

from helpers.models import max_difference, prompt_ids, tiny_model
from model.lens.text_pass import ROWS, Residuals


def test_it_is_a_trace_of_every_beginning() -> None:
    tiny = tiny_model(n_layer=3, n_embd=12, n_head=4)
    ids = prompt_ids(12)
    residuals = Residuals(tiny.gpt, ids)
    for n in (1, 5, 12):
        trace = tiny.trace(ids[:n])
        for layer in range(3):
            assert max_difference(residuals.attention(layer, n), trace.attention[layer]) <= 1e-6
        assert max_difference(residuals.logits(0, n), trace.logits) <= 1e-5
    assert residuals.nbytes == 4 * 4 * 12 * 12


@pytest.mark.parametrize("n", [1, 2, ROWS, ROWS + 1, ROWS + 2, 200])
def test_logprobs_of_all_tokens_but_the_first(n: int) -> None:
    tiny = tiny_model(context_length=200)
    ids = torch.randint(65, (n,), generator=torch.Generator().manual_seed(n)).tolist()
    expected = tiny.trace(ids).logits.log_softmax(-1)
    found = Residuals(tiny.gpt, ids).logprobs()
    assert found == pytest.approx([float(expected[t, ids[t + 1]]) for t in range(n - 1)], abs=1e-5)
