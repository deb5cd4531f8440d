"""How the cost of writing grows: with the streams, the length of the context and the size of the model.

    python -m bench.growth [--quick] [--picture FILE.svg]

Each line varies one of the three. Beside the tokens per second stands the share of the memory limit: every step has
to read all weights and the keys and values of every text, as fast as a plain sum over 256 MB reads in the same run.
Near 1, memory is what bounds; above it, part of that stays in the processor. Where the share is small, arithmetic
bounds, or work around the model.
"""

import gc
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from bench.harness import CACHE, GPT2_SHAPE, Row, parser, random_checkpoint, report, significant
from model import GPTConfig, LoadedModel, SamplingSettings, load
from model.serving.engine import Engine
from model.serving.readers import compiled_reader
from model.serving.sequence import TextSequence

SIZES = {
    "1 M": GPTConfig(n_layer=4, n_head=4, n_embd=128, vocab_size=512, context_length=1024),
    "5 M": GPTConfig(n_layer=6, n_head=8, n_embd=256, vocab_size=512, context_length=1024),
    "25 M": GPTConfig(n_layer=8, n_head=8, n_embd=512, vocab_size=512, context_length=1024),
    "124 M": GPT2_SHAPE,
}
STREAMS, CONTEXTS = (1, 2, 4, 8, 16, 32, 64), (64, 128, 256, 512, 1000)
MIDDLE, SHORT = "5 M", 64
READ_BYTES = 256_000_000


class Point(NamedTuple):
    """One measurement: what was varied, tokens per second of all texts, and the share of the memory limit."""

    at: str
    rate: float
    share: float


def read_rate() -> float:
    """Bytes per second at which memory is read: the fastest of a few sums."""
    numbers = torch.ones(READ_BYTES // 8, dtype=torch.int64)
    best = float("inf")
    for _ in range(5):
        started = time.perf_counter()
        numbers.sum()
        best = min(best, time.perf_counter() - started)
    return READ_BYTES / best


def measure(loaded: LoadedModel, n_streams: int, context: int, n_tokens: int, limit: float, at: str) -> Point:
    """Write ``n_tokens`` with each text that has read ``context`` tokens, all texts together."""
    reader = compiled_reader(loaded.gpt, n_streams, CACHE)
    engine = Engine(loaded, max_batch=n_streams, reader=reader)
    prompt = [i % loaded.config.vocab_size for i in range(context)]
    for _ in range(n_streams):
        request = loaded.request(prompt, n_tokens + 2, sampling=SamplingSettings(temperature=0))
        engine.submit(TextSequence(request, loaded, lambda _event: None))
    while engine.tokens_written < 2 * n_streams:  # everybody has read the prompt
        engine.step()
    before, started = engine.tokens_written, time.perf_counter()
    while engine.at_work:
        engine.step()
    seconds = time.perf_counter() - started
    n_written = engine.tokens_written - before
    if reader:
        reader.close()
    config = loaded.config
    weights = loaded.config.n_parameters * loaded.dtype.itemsize
    texts = n_streams * 2 * config.n_layer * config.n_embd * 4 * (context + n_tokens / 2)
    return Point(at, n_written / seconds, (weights + texts) * (n_written / n_streams) / seconds / limit)


def lines(quick: bool) -> dict[str, list[Point]]:
    """What is varied -> its measurements."""
    limit, n_tokens = read_rate(), 16 if quick else 48
    found: dict[str, list[Point]] = {"streams": [], "tokens of context": [], "weights": []}
    for name, config in SIZES.items():
        loaded = load(random_checkpoint(f"growth-{name.replace(' ', '')}", config))
        if name == MIDDLE:
            for n_streams in STREAMS:
                found["streams"].append(measure(loaded, n_streams, SHORT, n_tokens, limit, str(n_streams)))
            for context in CONTEXTS:
                found["tokens of context"].append(measure(loaded, 1, context, n_tokens, limit, str(context)))
        found["weights"].append(measure(loaded, 1, SHORT, n_tokens, limit, name))
        del loaded
        gc.collect()
    return found


def draw(found: dict[str, list[Point]], file: Path) -> None:
    """The lines side by side, tokens per second on a logarithmic scale, the share of the memory limit at each point."""
    width, height, left, top = 300, 200, 60, 40
    most = max(point.rate for points in found.values() for point in points)
    decades = max(1, len(str(int(most))))
    parts = []

    def y(rate: float) -> float:
        exponent = torch.tensor(rate).log10().item()
        return top + height * (1 - exponent / decades)

    for i, (varied, points) in enumerate(found.items()):
        x0 = left + i * (width + left)
        for decade in range(decades + 1):
            line = y(10.0**decade)
            parts.append(f'<line x1="{x0}" x2="{x0 + width}" y1="{line:.1f}" y2="{line:.1f}" stroke="#8886"/>')
            if i == 0:
                parts.append(f'<text x="{x0 - 6}" y="{line + 4:.1f}" text-anchor="end">{10**decade:,}</text>')
        step = width / max(1, len(points) - 1)
        places = [(x0 + n * step, y(point.rate)) for n, point in enumerate(points)]
        path = " ".join(f"{x:.1f},{at:.1f}" for x, at in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="#2a78d6" stroke-width="2"/>')
        for point, (x, at) in zip(points, places, strict=True):
            parts.append(f'<circle cx="{x:.1f}" cy="{at:.1f}" r="3" fill="#2a78d6"/>')
            parts.append(f'<text x="{x:.1f}" y="{at - 8:.1f}" text-anchor="middle">{point.share:.0%}</text>')
            parts.append(f'<text x="{x:.1f}" y="{top + height + 16}" text-anchor="middle">{point.at}</text>')
        parts.append(f'<text x="{x0 + width / 2}" y="{top + height + 36}" text-anchor="middle">{varied}</text>')
    total = left + len(found) * (width + left)
    style = 'font-family="sans-serif" font-size="12" fill="#888"'
    title = '<text x="12" y="18">tokens per second, and the share of the memory limit</text>'
    size = f'viewBox="0 0 {total} {top + height + 48}"'
    file.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>{title}{"".join(parts)}</svg>\n')


def rows(found: dict[str, Sequence[Point]]) -> list[Row]:
    made = []
    for varied, points in found.items():
        for point in points:
            made.append(Row(f"{point.at} {varied}", "tokens/s", point.rate, "more"))
            made.append(Row(f"{point.at} {varied}, share of the memory limit", "", significant(point.share), "more"))
    return made


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--picture", type=Path, help="an SVG file to draw the lines into")
    chosen = options.parse_args()
    found = lines(chosen.quick)
    if chosen.picture:
        draw(found, chosen.picture)
    report("growth", rows(dict(found)))


if __name__ == "__main__":
    main()
