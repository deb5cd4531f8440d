"""How fast Headscope writes and traces, compared with transformers and CTranslate2 on the same weights.

    python -m bench.decode [--quick] [--device cuda]

All decoding is greedy. Peers run in turn in the same process, each with its best thread count.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

import model
from bench.harness import (
    CACHE,
    GPT2_SHAPE,
    Row,
    character_checkpoint,
    in_turn,
    need_packages,
    open_for_bench,
    parser,
    random_checkpoint,
    report,
)
from bench.peers import ctranslate2_writers, transformers_writers
from model import SamplingSettings
from model.serving.choose_reader import choose_reader
from model.serving.engine import Engine
from model.serving.sequence import TextSequence

PROMPT = list(range(8))
BAR = 1.2


class Writer:
    """A model and its reader, shared by successive engines."""

    def __init__(self, folder: Path, dtype: str, n_streams: int, device: str = "cpu") -> None:
        self.loaded, self.n_streams = open_for_bench(folder, dtype, device), n_streams
        self.reader = choose_reader(self.loaded.gpt, n_streams, CACHE)

    def write(self, n_tokens: int, record: bool = False) -> None:
        """All streams in one engine, from their first token to their last."""
        engine = Engine(self.loaded, max_batch=self.n_streams, reader=self.reader)
        for _ in range(self.n_streams):
            sampling = SamplingSettings(temperature=0)
            request = self.loaded.request(PROMPT, n_tokens, sampling=sampling, record=record)
            engine.submit(TextSequence(request, self.loaded, lambda _event: None))
        while engine.at_work or engine.queue:
            engine.step()


def write_rows(case: str, folder: Path, n_streams: int, n_tokens: int, rounds: int) -> list[Row]:
    """Tokens per second of all streams together, compared at equal precision: the default one, and int8."""
    most = torch.get_num_threads()
    candidates: dict[str, Callable[[], None]] = {}
    for dtype in ("auto", "int8"):
        candidates[f"ours {dtype}"] = partial(Writer(folder, dtype, n_streams).write, n_tokens)
    for count in sorted({1, most}):
        candidates |= transformers_writers(folder, [PROMPT] * n_streams, n_tokens, count)
        candidates |= ctranslate2_writers(folder, [PROMPT] * n_streams, n_tokens, count)
    rates = {name: n_streams * n_tokens / seconds for name, seconds in in_turn(candidates, rounds).items()}
    torch.set_num_threads(most)
    peers = {name: rate for name, rate in rates.items() if not name.startswith("ours")}
    rounded = {name: rate for name, rate in peers.items() if "int8" in name}
    exact = {name: rate for name, rate in peers.items() if name not in rounded}
    return [
        Row(case, "tokens/s", rates["ours auto"], "more", exact, BAR),
        Row(f"{case}, int8", "tokens/s", rates["ours int8"], "more", rounded, BAR),
        Row(f"{case}, ours not quantised", "tokens/s", rates["ours auto"], "more", rounded),
    ]


def gpu_rows(case: str, folder: Path, n_streams: int, n_tokens: int, rounds: int) -> list[Row]:
    """The same on a GPU in bfloat16, and how close it comes to the memory limit.

    That is the rate at which the weights alone could be read.
    """
    writer = Writer(folder, "bfloat16", n_streams, "cuda")
    candidates: dict[str, Callable[[], None]] = {"ours": partial(writer.write, n_tokens)}
    candidates |= transformers_writers(folder, [PROMPT] * n_streams, n_tokens, torch.get_num_threads(), "cuda")
    rates = {name: n_streams * n_tokens / seconds for name, seconds in in_turn(candidates, rounds).items()}
    ours = rates.pop("ours")
    n_bytes = sum(weight.numel() * weight.element_size() for weight in writer.loaded.gpt.parameters())
    share = ours / n_streams * n_bytes / gpu_read_rate()
    return [
        Row(case, "tokens/s", ours, "more", rates, 8.0),
        Row(f"{case}, share of the memory limit", "", share, "more"),
    ]


def gpu_read_rate() -> float:
    """Bytes per second at which the GPU's memory is read: the fastest of a few sums over 4 GB."""
    numbers = torch.ones(10**9, device="cuda")
    best = float("inf")
    for _ in range(5):
        torch.cuda.synchronize()
        started = time.perf_counter()
        numbers.sum().item()
        best = min(best, time.perf_counter() - started)
    return 4 * 10**9 / best


def recording_row(case: str, folder: Path, n_tokens: int, rounds: int) -> Row:
    """Tokens per second while every head is recorded, compared with the rate without recording."""
    writer = Writer(folder, "auto", 1)
    seconds = in_turn(
        {
            "recorded": partial(writer.write, n_tokens, record=True),
            "not recorded": partial(writer.write, n_tokens),
        },
        3 * rounds,  # the difference is small compared with the noise of a single round
    )
    rates = {name: n_tokens / value for name, value in seconds.items()}
    return Row(case, "tokens/s", rates.pop("recorded"), "more", rates, 0.9)


def trace_row(case: str, folder: Path, rounds: int) -> Row:
    """Milliseconds for one trace of all heads over 256 tokens, compared with the plain forward pass."""
    loaded = model.load(folder)
    ids = [i % 65 for i in range(256)]

    @torch.inference_mode()
    def plain() -> None:
        loaded.gpt(torch.tensor([ids]))

    seconds = in_turn({"trace": lambda: loaded.trace(ids), "plain forward": plain}, 3 * rounds)
    milliseconds = {name: 1000 * value for name, value in seconds.items()}
    return Row(case, "ms", milliseconds.pop("trace"), "less", milliseconds, 1.25)


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    chosen = options.parse_args()
    quick: bool = chosen.quick
    need_packages("transformers", "ctranslate2")
    rounds = 3 if quick else 9
    gpt2, character = random_checkpoint("gpt2-124m-random", GPT2_SHAPE), character_checkpoint()
    if chosen.device == "cuda":
        one = gpu_rows("gpt2-124m, 1 stream", gpt2, 1, 256, rounds)
        report("decode", [*one, *gpu_rows("gpt2-124m, 64 streams", gpt2, 64, 256, rounds)])
        return
    rows = [
        *write_rows("gpt2-124m, 1 stream", gpt2, 1, 32 if quick else 64, rounds),
        *write_rows("gpt2-124m, 16 streams", gpt2, 16, 16 if quick else 64, 1 if quick else rounds),
        *write_rows("character model, 1 stream", character, 1, 128, rounds),
        *write_rows("character model, 16 streams", character, 16, 128, rounds),
        recording_row("gpt2-124m, all heads recorded", gpt2, 32 if quick else 64, rounds),
        recording_row("character model, all heads recorded", character, 200, rounds),
        trace_row("gpt2-124m, trace of 256 tokens", gpt2, rounds),
        trace_row("character model, trace of 256 tokens", character, rounds),
    ]
    report("decode", rows)


if __name__ == "__main__":
    main()
