"""The size of attention drawn as HTML, compared with BertViz's head view of the same weights.

    python -m bench.view [--quick]

The weights are those of 144 heads over 192 tokens, from random scores, which compress worse than a model's. Also the
size of a saved text: 48 heads over 256 tokens that a model wrote, with its next tokens, as ``Trace.to_html`` writes it.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

from bench.harness import ROOT, Row, arguments, need_packages, report
from model import load, view

N_LAYER, N_HEAD, N_TOKENS = 12, 12, 192


def random_weights(n_tokens: int, *, is_causal: bool) -> Tensor:
    """``(n_layer, n_head, n_tokens, n_tokens)``."""
    scores = 2 * torch.randn(N_LAYER, N_HEAD, n_tokens, n_tokens, generator=torch.Generator().manual_seed(0))
    later = torch.ones(n_tokens, n_tokens, dtype=torch.bool).triu(1)
    return (scores.masked_fill(later, -torch.inf) if is_causal else scores).softmax(-1)


def our_bytes(attention: Tensor, tokens: list[str], *, exact: bool = False) -> int:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "view.html"
        view(attention, tokens).to_html(path, exact=exact)
        return path.stat().st_size


def their_bytes(attention: Tensor, tokens: list[str]) -> int:
    from bertviz import head_view

    html: str = head_view([layer[None] for layer in attention], tokens, html_action="return").data
    return len(html.encode())


def rows(n_tokens: int) -> list[Row]:
    found: list[Row] = []
    tokens = [f"token{i}" for i in range(n_tokens)]
    for name, is_causal in (("decoder", True), ("encoder", False)):
        attention = random_weights(n_tokens, is_causal=is_causal)
        theirs = {"BertViz": their_bytes(attention, tokens) / 1e6}
        case = f"{name}, {N_LAYER * N_HEAD} heads x {n_tokens} tokens"
        found += [
            Row(case, "MB", our_bytes(attention, tokens) / 1e6, "less", theirs, bar=0.167),
            Row(f"{case}, float32", "MB", our_bytes(attention, tokens, exact=True) / 1e6, "less", theirs),
        ]
    return found


def saved_text() -> Row:
    """The file that someone gets who saves a text."""
    loaded = load(ROOT / "checkpoints" / "shakespeare-char", device="cpu")
    written = loaded.generate("ROMEO:", 256, seed=1)
    ids = [*written.request.prompt, *(step.token_id for step in written)][:256]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "text.html"
        loaded.trace(ids).to_html(path)
        return Row("48 heads x 256 tokens, a saved text", "MB", path.stat().st_size / 1e6, "less")


def main() -> None:
    quick = arguments(__doc__ or "").quick
    need_packages("bertviz")
    report("view", [*rows(N_TOKENS // 4 if quick else N_TOKENS), saved_text()])


if __name__ == "__main__":
    main()
