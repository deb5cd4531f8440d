"""How fast Headscope reads, writes and traces, compared with other engines on the same weights.

    python -m bench.decode [--quick] [--device cuda]

The engines are transformers, CTranslate2, llama.cpp and OpenVINO. All decoding is greedy. They run in turn in the same
process, with one thread per core, or with one if that is faster for a small model. Models are converted for them once.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import torch

import model
from bench.harness import (
    CACHE,
    GPT2_SHAPE,
    SMOLLM2_SHAPE,
    TINY_STORIES_SHAPE,
    Row,
    character_checkpoint,
    in_turn,
    need_packages,
    open_for_bench,
    parser,
    random_checkpoint,
    report,
)
from bench.peers.ctranslate import ctranslate2_writers
from bench.peers.hugging_face import transformers_writers
from bench.peers.llama_server import llama_cpp_writers
from bench.peers.open_vino import openvino_writers
from model import SamplingSettings
from model.serving.choose_reader import choose_reader
from model.serving.engine import Engine
from model.serving.sequence import TextSequence

PROMPT, LONG_PROMPT = list(range(8)), list(range(900))
Peer = Callable[[Path, list[list[int]], int, int], dict[str, Callable[[], None]]]
PEERS: tuple[Peer, ...] = (transformers_writers, ctranslate2_writers, llama_cpp_writers, openvino_writers)
BAR = 1.2
SMALL = 100_000_000  # bytes of a model that one thread may write faster with than two


class Writer:
    """A model and its reader, shared by successive engines."""

    def __init__(
        self, folder: Path, dtype: str, n_streams: int, device: str = "cpu", prompt: list[int] = PROMPT
    ) -> None:
        self.loaded, self.n_streams, self.prompt = open_for_bench(folder, dtype, device), n_streams, prompt
        self.reader = choose_reader(self.loaded.gpt, n_streams, CACHE)

    def write(self, n_tokens: int, record: bool = False) -> None:
        """All streams in one engine, from their first token to their last."""
        engine = Engine(self.loaded, max_batch=self.n_streams, reader=self.reader)
        for _ in range(self.n_streams):
            sampling = SamplingSettings(temperature=0)
            request = self.loaded.request(self.prompt, n_tokens, sampling=sampling, record=record)
            engine.submit(TextSequence(request, self.loaded, lambda _event: None))
        while engine.active or engine.queue:
            engine.step()


def fastest_peers(
    folder: Path, prompts: list[list[int]], n_tokens: int, peers: Sequence[Peer]
) -> dict[str, Callable[[], None]]:
    """Every engine of ``peers`` in each of its precisions, with one thread per core, or for short texts of a small
    model with one thread if that is faster.
    """
    most = torch.get_num_threads()
    is_small = (folder / "model.safetensors").stat().st_size < SMALL and len(prompts[0]) <= len(PROMPT)
    counts = {1, most} if is_small else {most}
    found: dict[str, list[Callable[[], None]]] = {}
    for make in peers:
        for count in sorted(counts):
            for name, run in make(folder, prompts, n_tokens, count).items():
                found.setdefault(name, []).append(run)
    return {name: runs[0] if len(runs) == 1 else min(runs, key=seconds_of) for name, runs in found.items()}


def seconds_of(run: Callable[[], None]) -> float:
    """The duration of its second call."""
    run()
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def compared(
    folder: Path,
    n_streams: int,
    n_tokens: int,
    rounds: int,
    prompt: list[int] = PROMPT,
    peers: Sequence[Peer] = PEERS,
) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Seconds to write with Headscope, by dtype, with the other engines, and with those whose weights are integers."""
    most = torch.get_num_threads()
    ours = {dtype: Writer(folder, dtype, n_streams, prompt=prompt) for dtype in ("auto", "int8")}
    print(f"{folder.name}: products in", " and ".join(w.reader.products for w in ours.values() if w.reader))
    candidates: dict[str, Callable[[], None]] = {
        dtype: partial(writer.write, n_tokens) for dtype, writer in ours.items()
    }
    candidates |= fastest_peers(folder, [prompt] * n_streams, n_tokens, peers)
    seconds = in_turn(candidates, rounds)
    for writer in ours.values():
        if writer.reader:
            writer.reader.close()
    torch.set_num_threads(most)
    theirs = {name: value for name, value in seconds.items() if name not in ours}
    rounded = {name: value for name, value in theirs.items() if name.endswith(("int8", "Q8_0"))}
    exact = {name: value for name, value in theirs.items() if name not in rounded}
    return {dtype: seconds[dtype] for dtype in ours}, exact, rounded


def write_rows(case: str, folder: Path, n_streams: int, n_tokens: int, rounds: int) -> list[Row]:
    """Tokens per second of all streams together, compared at equal precision: the default one, and int8."""
    ours, exact, rounded = (
        {name: n_streams * n_tokens / value for name, value in seconds.items()}
        for seconds in compared(folder, n_streams, n_tokens, rounds)
    )
    return [
        Row(case, "tokens/s", ours["auto"], "more", exact, BAR),
        Row(f"{case}, int8", "tokens/s", ours["int8"], "more", rounded, BAR),
        Row(f"{case}, ours not quantised", "tokens/s", ours["auto"], "more", rounded),
    ]


def window_rows(case: str, folder: Path, n_streams: int, n_tokens: int, rounds: int) -> list[Row]:
    """The same after a prompt as long as the windows, for a model that CTranslate2 and llama.cpp do not run: compared
    with transformers.
    """
    prompt = list(range(256))
    seconds, exact, _ = compared(folder, n_streams, n_tokens, rounds, prompt, (transformers_writers,))
    total = n_streams * n_tokens
    rates = {name: total / value for name, value in exact.items()}
    return [
        Row(case, "tokens/s", total / seconds["auto"], "more", rates, BAR),
        Row(f"{case}, int8", "tokens/s", total / seconds["int8"], "more"),
    ]


def prompt_rows(case: str, folder: Path, rounds: int) -> list[Row]:
    """Milliseconds from the request to the first token after a long prompt."""
    ours, exact, rounded = (
        {name: 1000 * value for name, value in seconds.items()}
        for seconds in compared(folder, 1, 1, rounds, LONG_PROMPT)
    )
    bar = 1 / BAR
    return [
        Row(case, "ms", ours["auto"], "less", exact, round(bar, 2)),
        Row(f"{case}, int8", "ms", ours["int8"], "less", rounded, round(bar, 2)),
    ]


def gpu_rows(case: str, folder: Path, n_streams: int, n_tokens: int, rounds: int, bar: float) -> list[Row]:
    """The same on a GPU in bfloat16, and how close it comes to the memory limit.

    That is the rate at which the weights alone could be read. ``bar`` is in tokens per second.
    """
    writer = Writer(folder, "bfloat16", n_streams, "cuda")
    candidates: dict[str, Callable[[], None]] = {"ours": partial(writer.write, n_tokens)}
    candidates |= transformers_writers(folder, [PROMPT] * n_streams, n_tokens, torch.get_num_threads(), "cuda")
    rates = {name: n_streams * n_tokens / seconds for name, seconds in in_turn(candidates, rounds).items()}
    ours = rates.pop("ours")
    n_bytes = sum(weight.numel() * weight.element_size() for weight in writer.loaded.gpt.parameters())
    share = ours / n_streams * n_bytes / gpu_read_rate()
    return [
        Row(case, "tokens/s", ours, "more", bar=bar),
        Row(f"{case}, compared", "tokens/s", ours, "more", rates, 8.0),
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
    return Row(case, "tokens/s", rates.pop("recorded"), "more", rates, 0.95)


def trace_row(case: str, folder: Path, rounds: int) -> Row:
    """Milliseconds for one trace of all heads over 256 tokens, compared with a plain forward pass in float32."""
    loaded = model.load(folder)
    ids = [i % 65 for i in range(256)]

    @torch.inference_mode()
    def plain() -> None:
        loaded.lens.gpt(torch.tensor([ids]))

    seconds = in_turn({"trace": lambda: loaded.trace(ids), "plain forward": plain}, 3 * rounds)
    milliseconds = {name: 1000 * value for name, value in seconds.items()}
    return Row(case, "ms", milliseconds.pop("trace"), "less", milliseconds, 1.25)


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    chosen = options.parse_args()
    quick: bool = chosen.quick
    on_gpu = chosen.device == "cuda"
    need_packages("transformers", *(() if on_gpu else ("ctranslate2", "xllamacpp", "gguf", "openvino")))
    report("decode", gpu_cases(quick) if on_gpu else cpu_cases(quick))


def gpu_cases(quick: bool) -> Iterator[Row]:
    gpt2, rounds = random_checkpoint("gpt2-124m-random", GPT2_SHAPE), 3 if quick else 9
    yield from gpu_rows("gpt2-124m, 1 stream", gpt2, 1, 256, rounds, 2_500)
    yield from gpu_rows("gpt2-124m, 64 streams", gpt2, 64, 256, rounds, 40_000)


def cpu_cases(quick: bool) -> Iterator[Row]:
    """The slow cases are measured in fewer rounds."""
    gpt2, character = random_checkpoint("gpt2-124m-random", GPT2_SHAPE), character_checkpoint()
    smollm2 = random_checkpoint("smollm2-135m-bfloat16", SMOLLM2_SHAPE, dtype=torch.bfloat16)  # as on the Hub
    rounds, few, one, many = (3, 1, 16, 8) if quick else (9, 3, 64, 64)
    yield from write_rows("gpt2-124m, 1 stream", gpt2, 1, one, few)
    yield from write_rows("gpt2-124m, 16 streams", gpt2, 16, many, few)
    yield from prompt_rows("gpt2-124m, first token after 900", gpt2, few)
    yield from write_rows("smollm2-135m, 1 stream", smollm2, 1, one, few)
    yield from write_rows("smollm2-135m, 16 streams", smollm2, 16, many, few)
    stories = random_checkpoint("tinystories-33m-random", TINY_STORIES_SHAPE)
    yield from window_rows("tinystories-33m, 1 stream after 256", stories, 1, 64, few)
    yield from write_rows("character model, 1 stream", character, 1, 128, rounds)
    yield from write_rows("character model, 16 streams", character, 16, 64 if quick else 128, few)
    yield recording_row("gpt2-124m, all heads recorded", gpt2, 32 if quick else 64, rounds)
    yield recording_row("character model, all heads recorded", character, 200, rounds)
    yield trace_row("gpt2-124m, trace of 256 tokens", gpt2, rounds)
    yield trace_row("character model, trace of 256 tokens", character, rounds)


if __name__ == "__main__":
    main()
