"""How fast Headscope writes and traces: against transformers and CTranslate2 on the same weights, and against itself.

    python -m bench.decode [--quick]

Everything is greedy. Peers run in turn in the same process, each with the thread count that suits it.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

import model
from bench.harness import (
    GPT2_SHAPE,
    Row,
    arguments,
    character_checkpoint,
    in_turn,
    open_for_bench,
    random_checkpoint,
    report,
)
from bench.peers import ctranslate2_writers, transformers_writers
from model import LoadedModel, SamplingSettings
from model.serving.engine import Engine
from model.serving.sequence import TextSequence

PROMPT = list(range(8))


def write(loaded: LoadedModel, n_tokens: int, threads: int, record: bool = False) -> None:
    torch.set_num_threads(threads)
    for _ in loaded.generate(PROMPT, n_tokens, temperature=0, record=record):
        pass


def write_together(loaded: LoadedModel, n_streams: int, n_tokens: int, threads: int) -> None:
    """All streams in one engine, from their first token to their last."""
    torch.set_num_threads(threads)
    engine = Engine(loaded, max_batch=n_streams)
    for _ in range(n_streams):
        request = loaded.request(PROMPT, n_tokens, sampling=SamplingSettings(temperature=0))
        engine.submit(TextSequence(request, loaded, lambda _event: None))
    while engine.at_work or engine.queue:
        engine.step()


def write_rows(case: str, folder: Path, n_streams: int, n_tokens: int, rounds: int, bar: float) -> list[Row]:
    """Tokens per second of all streams together, ours in the precision that it takes by itself and in int8."""
    most = torch.get_num_threads()
    candidates: dict[str, Callable[[], None]] = {}
    for dtype in ("auto", "int8"):
        loaded = open_for_bench(folder, dtype)
        for count in {torch.get_num_threads()} if n_streams == 1 else {1, most}:
            candidates[f"ours {dtype} {count}t"] = partial(write_together, loaded, n_streams, n_tokens, count)
    for count in sorted({1, most}):
        candidates |= transformers_writers(folder, [PROMPT] * n_streams, n_tokens, count)
        candidates |= ctranslate2_writers(folder, [PROMPT] * n_streams, n_tokens, count)
    rates = {name: n_streams * n_tokens / seconds for name, seconds in in_turn(candidates, rounds).items()}
    torch.set_num_threads(most)
    peers = {name: rate for name, rate in rates.items() if not name.startswith("ours")}

    def best(dtype: str) -> float:
        return max(rate for name, rate in rates.items() if name.startswith(f"ours {dtype}"))

    return [
        Row(case, "tokens/s", best("auto"), "more", peers, bar),
        Row(f"{case}, int8", "tokens/s", best("int8"), "more", peers, bar),
    ]


def recording_row(case: str, folder: Path, n_tokens: int, rounds: int) -> Row:
    """Tokens per second while every head is recorded, against the rate without."""
    most = torch.get_num_threads()
    loaded = open_for_bench(folder)
    threads = torch.get_num_threads()
    seconds = in_turn(
        {
            "recorded": partial(write, loaded, n_tokens, threads, record=True),
            "not recorded": partial(write, loaded, n_tokens, threads),
        },
        3 * rounds,  # the difference is small beside what other load does to a single round
    )
    rates = {name: n_tokens / value for name, value in seconds.items()}
    torch.set_num_threads(most)
    return Row(case, "tokens/s", rates.pop("recorded"), "more", rates, 0.9)


def trace_row(case: str, folder: Path, rounds: int) -> Row:
    """Milliseconds for one trace of all heads over 256 tokens, against the plain forward pass."""
    loaded = model.load(folder)
    ids = [i % 65 for i in range(256)]

    @torch.inference_mode()
    def plain() -> None:
        loaded.gpt(torch.tensor([ids]))

    seconds = in_turn({"trace": lambda: loaded.trace(ids), "plain forward": plain}, 3 * rounds)
    milliseconds = {name: 1000 * value for name, value in seconds.items()}
    return Row(case, "ms", milliseconds.pop("trace"), "less", milliseconds, 1.25)


def main() -> None:
    quick = arguments(__doc__ or "").quick
    rounds = 3 if quick else 9
    gpt2, character = random_checkpoint("gpt2-124m-random", GPT2_SHAPE), character_checkpoint()
    rows = [
        *write_rows("gpt2-124m, 1 stream", gpt2, 1, 32 if quick else 64, rounds, 2.0),
        *write_rows("gpt2-124m, 16 streams", gpt2, 16, 16 if quick else 64, 1 if quick else rounds, 1.5),
        *write_rows("character model, 1 stream", character, 1, 128, rounds, 1.5),
        *write_rows("character model, 16 streams", character, 16, 128, rounds, 1.5),
        recording_row("gpt2-124m, all heads recorded", gpt2, 32 if quick else 64, rounds),
        recording_row("character model, all heads recorded", character, 200, rounds),
        trace_row("gpt2-124m, trace of 256 tokens", gpt2, rounds),
        trace_row("character model, trace of 256 tokens", character, rounds),
    ]
    report("decode", rows)


if __name__ == "__main__":
    main()
