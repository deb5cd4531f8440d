"""The server under load, compared with ``transformers serve``, a plain Gradio demo and the bare engine.

    python -m bench.serve [--quick] [--soak MINUTES]

The servers run one at a time, on the same checkpoint. A client sends a prompt of eight tokens and streams its text; the
clients start within one second. ``bench.outside`` measures the cost of a token outside the model. ``--soak`` keeps 16
clients busy and monitors the memory.
"""

import statistics
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from bench import outside
from bench.harness import (
    CACHE,
    GPT2_SHAPE,
    Row,
    character_checkpoint,
    free_port,
    need_packages,
    open_for_bench,
    parser,
    random_checkpoint,
    report,
)
from bench.load import Heard, Load, completions, gradio_calls
from bench.process import MB, PATIENCE, ours, serving, wait_for_loops
from model import LoadedModel, SamplingSettings
from model.serving.choose_reader import choose_reader
from model.serving.engine import Engine
from model.serving.sequence import Event, TextSequence

IN_PROCESS = "in process"
IN_PROCESS_SHARE = {1: 0.8, 16: 0.85}  # number of clients -> fraction of the in-process rate that they should reach
TURNS = 5  # of our server and the in-process engine in alternation, because the machine's speed varies


def headscope(folder: Path, port: int) -> tuple[list[str], str]:
    return ours(port, "--checkpoint", str(folder)), "/health"


def transformers(folder: Path, port: int) -> tuple[list[str], str]:
    program = str(Path(sys.executable).with_name("transformers"))
    return [program, "serve", str(folder), "--device", "cpu", "--host", "127.0.0.1", "--port", str(port)], "/health"


def plain_demo(folder: Path, port: int) -> tuple[list[str], str]:
    return [sys.executable, "-m", "bench.plain_demo", str(folder), str(port)], "/config"


@dataclass(frozen=True)
class Case:
    """The requests to every server, and to our engine without HTTP."""

    name: str
    folder: Path
    n_clients: list[int]
    n_tokens: int
    spread: float  # seconds within which the clients start
    rounds: int
    has_bars: bool

    @cached_property
    def loaded(self) -> LoadedModel:
        return open_for_bench(self.folder)

    def prompts(self, n: int) -> list[str]:
        """Prompts of eight tokens, all different."""
        size = self.loaded.config.vocab_size
        return [self.loaded.tokenizer.decode((7 * i + 13 * j) % size for j in range(8)) for i in range(n)]

    def heard(self) -> dict[str, dict[int, list[Load]]]:
        """The measurements for each server and number of clients; our server and the in-process engine alternate."""
        named = partial(completions, model=str(self.folder))  # transformers names a model by its folder
        servers: dict[str, tuple[Any, Any]] = {
            "ours": (headscope, completions),
            "transformers serve": (transformers, named),
            "plain Gradio": (plain_demo, gradio_calls),
        }
        found: dict[str, dict[int, list[Load]]] = {IN_PROCESS: {n: [] for n in self.n_clients}}
        for name, (start, ask) in servers.items():
            port = free_port()
            command, path = start(self.folder, port)
            with serving(command, port, path):
                ask(port, self.prompts(2), 4, self.spread)  # initialise everything that the first request creates
                if name == "ours":
                    wait_for_loops(port)
                found[name] = {n: [] for n in self.n_clients}
                for n in self.n_clients * (TURNS if name == "ours" else 1):
                    found[name][n].append(ask(port, self.prompts(n), self.n_tokens, self.spread))
                    if name == "ours" and n in IN_PROCESS_SHARE:
                        found[IN_PROCESS][n].append(self.in_process(n))
        return found

    def in_process(self, n: int) -> Load:
        """The same requests with the same timing, without HTTP."""
        engine = Engine(self.loaded, max_waiting=n, reader=choose_reader(self.loaded.gpt, 16, CACHE))
        thread = threading.Thread(target=engine.run)
        thread.start()
        start, clients = time.perf_counter(), []
        for i, prompt in enumerate(self.prompts(n)):
            time.sleep(max(0.0, start + self.spread * i / n - time.perf_counter()))
            heard = Heard(time.perf_counter(), [])
            clients.append(heard)
            request = self.loaded.request(prompt, self.n_tokens, sampling=SamplingSettings(temperature=0))

            def listen(_event: Event, times: list[float] = heard.times) -> None:
                times.append(time.perf_counter())

            engine.submit(TextSequence(request, self.loaded, listen))
        engine.close(grace=PATIENCE)
        thread.join()
        return Load(clients, self.n_tokens)

    def rows(self) -> list[Row]:
        rounds = [self.heard() for _ in range(self.rounds)]

        def median(server: str, n: int, value: Callable[[Load], float]) -> float:
            return statistics.median(value(load) for heard in rounds for load in heard[server][n])

        def milliseconds(n: int, value: Callable[[Load], float]) -> float:
            return 1000 * median("ours", n, value)

        rows = []
        for n in self.n_clients:
            case = f"{self.name}, {n} client" + "s" * (n > 1)
            peers = {name: median(name, n, rate_of) for name in ("transformers serve", "plain Gradio")}
            rows.append(Row(case, "tokens/s", median("ours", n, rate_of), "more", peers))
            rows.append(Row(f"{case}, first token p50", "ms", milliseconds(n, lambda load: load.first(0.5)), "less"))
            rows.append(Row(f"{case}, first token p95", "ms", milliseconds(n, lambda load: load.first(0.95)), "less"))
            rows.append(Row(f"{case}, next token p95", "ms", milliseconds(n, lambda load: load.gap(0.95)), "less"))
        for n, bar in IN_PROCESS_SHARE.items():
            inside = {IN_PROCESS: median(IN_PROCESS, n, rate_of)}
            case = f"{self.name}, {n} client{'s' * (n > 1)} compared with in process"
            rows.append(Row(case, "tokens/s", median("ours", n, rate_of), "more", inside, bar))
        lone = {"of a lone client": milliseconds(1, lambda load: load.first(0.95))}
        first = milliseconds(16, lambda load: load.first(0.95))
        case = f"{self.name}, 16 clients compared with one, first token p95"
        rows.append(Row(case, "ms", first, "less", lone, 3.0 if self.has_bars else None))
        return rows


def rate_of(load: Load) -> float:
    return load.rate


def soak(case: Case, minutes: float) -> list[Row]:
    """Keep 16 clients busy; report the memory after the first tenth of the time and at the end."""
    port = free_port()
    command, path = headscope(case.folder, port)
    n_tokens, seen = 0, []
    with serving(command, port, path) as server:
        start = time.monotonic()
        while (passed := time.monotonic() - start) < 60 * minutes:
            n_tokens += 16 * completions(port, case.prompts(16), case.n_tokens, case.spread).n_tokens
            seen.append((passed, server.resident / MB))
    settled = [size for passed, size in seen if passed > 6 * minutes]
    print(f"{n_tokens:,} tokens in {minutes:g} minutes, {n_tokens / 60 / minutes:.0f} a second")
    return [Row("soak, memory at the end", "MB", settled[-1], "less", {"when settled": settled[0]}, 1.05)]


def main() -> None:
    made = parser(__doc__ or "")
    made.add_argument("--soak", type=float, metavar="MINUTES", help="run only the soak test, on the character model")
    given = made.parse_args()
    if not given.soak:
        need_packages("transformers")
    n_clients, rounds = ([1, 16], 1) if given.quick else ([1, 4, 16, 64], 3)
    gpt2, character = random_checkpoint("gpt2-124m-random", GPT2_SHAPE), character_checkpoint()
    cases = [
        Case("gpt2-124m", gpt2, n_clients, 64, 1.0, rounds, True),
        Case("character model", character, n_clients, 200, 0.1, rounds, False),
    ]
    if given.soak:
        report("serve", soak(cases[1], given.soak))
    else:
        report(
            "serve", [row for case in cases for row in case.rows()] + outside.rows([16] if given.quick else [16, 64])
        )


if __name__ == "__main__":
    main()
