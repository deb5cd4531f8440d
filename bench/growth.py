"""How the cost of writing grows with the number of streams, the length of the context and the size of the model.

    python -m bench.growth [--quick] [--picture FILE.svg]

Each line varies one of the three, and gives the tokens per second and the share of the memory limit. The limit assumes
that every step reads all weights and the keys and values of every text at the speed of a plain sum over 256 MB in the
same run. The fastest of five rounds counts. Near 1, memory bandwidth is the bottleneck; above 1, part of the data stays
in the processor's caches. If the share is small, arithmetic or work outside the model is the bottleneck. Memory is how
much more the process holds after writing the texts than before loading the model.
"""

import gc
import math
import resource
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from bench.harness import CACHE, GPT2_SHAPE, Row, parser, random_checkpoint, report, significant
from model import GPTConfig, SamplingSettings, load
from model.serving.choose_reader import choose_reader
from model.serving.engine import Engine
from model.serving.sequence import TextSequence
from web.serving.process_memory import trim_heap

SIZES = {
    "1 M": GPTConfig(n_layer=4, n_head=4, n_embd=128, vocab_size=512, context_length=1024),
    "5 M": GPTConfig(n_layer=6, n_head=8, n_embd=256, vocab_size=512, context_length=1024),
    "25 M": GPTConfig(n_layer=8, n_head=8, n_embd=512, vocab_size=512, context_length=1024),
    "124 M": GPT2_SHAPE,
}
STREAMS, CONTEXTS = (1, 2, 4, 8, 16, 32, 64), (64, 128, 256, 512, 1000)
MIDDLE, SHORT = "5 M", 64
READ_BYTES = 256_000_000
WIDTH, HEIGHT, LEFT, GAP, INSET = 300, 150, 60, 30, 24  # a chart and the space around it, in the units of the picture


class Point(NamedTuple):
    """One measurement: what was varied, tokens per second of all texts, share of the memory limit, and bytes held."""

    at: str
    rate: float
    share: float
    memory: int


def read_rate() -> float:
    """Bytes per second at which memory is read: the fastest of a few sums."""
    numbers = torch.ones(READ_BYTES // 8, dtype=torch.int64)
    best = float("inf")
    for _ in range(5):
        started = time.perf_counter()
        numbers.sum()
        best = min(best, time.perf_counter() - started)
    return READ_BYTES / best


def resident() -> int:
    """Bytes of memory that this process holds; 0 on systems other than Linux."""
    gc.collect()
    trim_heap()
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * resource.getpagesize() if statm.exists() else 0


def measure(
    folder: Path, n_streams: int, context: int, n_tokens: int, limit: float, at: str, dtype: str = "auto"
) -> Point:
    """Write ``n_tokens`` with each text that has read ``context`` tokens, all texts together."""
    held = resident()
    loaded = load(folder, dtype=dtype)
    config = loaded.config
    reader = choose_reader(loaded.gpt, n_streams, CACHE)
    engine = Engine(loaded, max_batch=n_streams, reader=reader)
    prompt = [i % config.vocab_size for i in range(context)]
    started_texts: set[int] = set()
    for i in range(n_streams):
        request = loaded.request(prompt, n_tokens + 2 + n_streams, sampling=SamplingSettings(temperature=0))
        engine.submit(TextSequence(request, loaded, lambda _event, i=i: started_texts.add(i)))  # type: ignore[misc]
    while len(started_texts) < n_streams:  # some write while others still read their prompts
        engine.step()
    before, started = engine.tokens_written, time.perf_counter()
    while engine.tokens_written < before + n_tokens * n_streams and len(engine.active) == n_streams:
        engine.step()
    seconds = time.perf_counter() - started
    n_written = engine.tokens_written - before
    memory = resident() - held
    if reader:
        reader.close()
    weights = config.n_parameters * loaded.dtype.itemsize
    texts = n_streams * 2 * config.n_layer * config.n_embd * 4 * (context + n_tokens / 2)
    share = (weights + texts) * (n_written / n_streams) / seconds / limit
    return Point(at, n_written / seconds, share, memory)


def lines(quick: bool) -> dict[str, list[Point]]:
    """What is varied -> its measurements."""
    limit, n_tokens = read_rate(), 16 if quick else 24
    folders = {name: random_checkpoint(f"growth-{name.replace(' ', '')}", config) for name, config in SIZES.items()}

    def point(at: object, n_streams: int = 1, context: int = SHORT, size: str = MIDDLE) -> Point:
        rounds = [
            measure(folders[size], n_streams, context, n_tokens, limit, str(at)) for _ in range(1 if quick else 5)
        ]
        return max(rounds, key=lambda measured: measured.rate)

    point("the first, which compiles")
    return {
        "streams": [point(n, n_streams=n) for n in STREAMS],
        "tokens of context": [point(n, context=n) for n in CONTEXTS],
        "weights": [point(name, size=name) for name in SIZES],
    }


def draw(found: dict[str, list[Point]], file: Path) -> None:
    """Draw tokens per second, labelled with the share of the memory limit, above megabytes; on logarithmic scales."""
    parts: list[str] = []
    rates = [[point.rate for point in points] for points in found.values()]
    shares = [[f"{point.share:.0%}" for point in points] for points in found.values()]
    sizes = [[max(point.memory / 1e6, 0.1) for point in points] for points in found.values()]
    said = [[f"{megabytes:,.0f}" for megabytes in row] for row in sizes]
    charts = (("tokens per second (share of the memory limit)", rates, shares), ("megabytes of memory", sizes, said))
    for i, (title, values, labels) in enumerate(charts):
        draw_charts(parts, 44 + i * (HEIGHT + 76), title, values, labels, list(found.values()))
    foot = 24 + 2 * (HEIGHT + 76)
    for i, varied in enumerate(found):
        parts.append(text(LEFT + i * (WIDTH + GAP) + WIDTH / 2, foot, varied))
    frame = f'viewBox="0 0 {LEFT + len(found) * (WIDTH + GAP)} {foot + 12}"'
    style = 'font-family="sans-serif" font-size="12" fill="#888"'
    file.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" {frame} {style}>{"".join(parts)}</svg>\n')


def draw_charts(
    parts: list[str], top: float, title: str, values: list[list[float]], labels: list[list[str]], at: list[list[Point]]
) -> None:
    """A chart for each list of ``values``, side by side on the same scale, with a label at each point."""
    least = math.floor(math.log10(min(map(min, values))))
    most = math.ceil(math.log10(max(map(max, values))))
    parts.append(text(LEFT, top - 26, title, "start"))

    def y(value: float) -> float:
        return top + HEIGHT * (most - math.log10(value)) / (most - least)

    for i, (numbers, names, points) in enumerate(zip(values, labels, at, strict=True)):
        x0 = LEFT + i * (WIDTH + GAP)
        for decade in range(least, most + 1):
            line = y(10.0**decade)
            parts.append(f'<line x1="{x0}" x2="{x0 + WIDTH}" y1="{line:.1f}" y2="{line:.1f}" stroke="#8884"/>')
            if i == 0:
                parts.append(text(x0 - 8, line + 4, f"{10.0**decade:,g}", "end"))
        step = (WIDTH - 2 * INSET) / (len(numbers) - 1)
        places = [(x0 + INSET + n * step, y(number)) for n, number in enumerate(numbers)]
        path = " ".join(f"{x:.1f},{place:.1f}" for x, place in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="#2a78d6" stroke-width="2"/>')
        for (x, place), name, point in zip(places, names, points, strict=True):
            parts.append(f'<circle cx="{x:.1f}" cy="{place:.1f}" r="3" fill="#2a78d6"/>')
            parts.append(text(x, place - 9, name))
            parts.append(text(x, top + HEIGHT + 18, point.at))


def text(x: float, y: float, words: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'


def rows(found: dict[str, Sequence[Point]]) -> list[Row]:
    made = []
    for varied, points in found.items():
        for point in points:
            made.append(Row(f"{point.at} {varied}", "tokens/s", point.rate, "more"))
            made.append(Row(f"{point.at} {varied}, share of the memory limit", "", significant(point.share), "more"))
            made.append(Row(f"{point.at} {varied}, memory", "MB", round(point.memory / 1e6, 1), "less"))
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
