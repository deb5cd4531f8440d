"""The cost of a token outside the model, measured with a model that takes no time and clients on another core.

    python -m bench.outside [--quick]

The engine takes a step at fixed times and writes one token for each text in it, as a fast model would. All processor
time of the server is then spent on everything else: passing the token on, its text, JSON, HTTP, the event loop.
"""

import inspect
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from bench.harness import ROOT, Row, character_checkpoint, free_port, parser, report

SECONDS = 4.0  # of writing per case
BAR = 25.0  # microseconds
STEPS = {1: 1_000, 16: 500, 64: 250}  # a second, by number of clients: 1,000 to 16,000 tokens a second
PARTS = {
    "engine": ("model.serving.engine.Engine.step",),
    "handing over": ("web.serving.generation.Generation.push",),
    "text": ("model.generate.Continuation.add",),
    "chunk": ("web.api.completions.Completion.take", "web.api.completions.Completion.as_chunk"),
    "JSON": ("web.api.completions.server_sent_event",),
    "HTTP": ("uvicorn.protocols.http.httptools_impl.RequestResponseCycle.send",),
    "socket": ("asyncio.selector_events._SelectorSocketTransport.write",),  # with uvloop, among the rest
}


@dataclass(frozen=True)
class Cost:
    """Microseconds of processor time per token, in total and by part, and the clients' measurements."""

    microseconds: float
    parts: dict[str, float]
    tokens_per_second: float
    tokens_per_event: float


def free_engine(n_steps: int) -> type[Any]:
    """An engine that runs ``n_steps`` steps per second with a model that takes no time."""
    from model.serving.engine import Engine

    class FreeEngine(Engine):
        due = 0.0

        def forward(self, planned: Sequence[Any]) -> None:
            self.due = max(self.due + 1 / n_steps, time.monotonic() - 1 / n_steps)
            time.sleep(max(0.0, self.due - time.monotonic()))
            for sequence in planned:
                sequence.advance()
                if sequence.n_unread:
                    continue
                token_id = 1 + len(sequence.written) % 50
                step = sequence.add(token_id, -1.0)
                sequence.ids = [*sequence.ids[:8], token_id]  # constant length, so the context never fills up
                sequence.start_after(len(sequence.ids) - 1)
                self.tokens_written += 1
                if step.finish_reason:
                    self.end(sequence, step)
                else:
                    sequence.report(step)

    return FreeEngine


@contextmanager
def timed(spent: dict[str, int]) -> Iterator[None]:
    """Add up the processor time of each part, in nanoseconds of the thread that runs it."""
    with ExitStack() as stack:
        for part, names in PARTS.items():
            for name in names:
                owner, _, attribute = name.rpartition(".")
                stack.enter_context(mock.patch(name, timing(find(owner, attribute), spent, part)))
        yield


def find(owner: str, attribute: str) -> Callable[..., Any]:
    import pkgutil

    found: Callable[..., Any] = getattr(pkgutil.resolve_name(owner), attribute)
    return found


def timing(function: Callable[..., Any], spent: dict[str, int], part: str) -> Callable[..., Any]:
    @contextmanager
    def timed() -> Iterator[None]:
        began = time.thread_time_ns()
        try:
            yield
        finally:
            spent[part] = spent.get(part, 0) + time.thread_time_ns() - began

    def timed_function(*args: Any, **kwargs: Any) -> Any:
        with timed():
            return function(*args, **kwargs)

    async def timed_coroutine(*args: Any, **kwargs: Any) -> Any:
        with timed():  # rarely suspended: only while a client reads too slowly
            return await function(*args, **kwargs)

    return timed_coroutine if inspect.iscoroutinefunction(function) else timed_function


def measure(n_clients: int, *, by_part: bool) -> Cost:
    """Start a server in this process, and stream from it with clients in another process."""
    import app
    from model.serving.engine import Engine
    from web.settings import Limits, Settings

    port, n_steps = free_port(), STEPS[n_clients]
    n_tokens = int(n_steps * SECONDS)
    limits = Limits(max_batch=max(16, n_clients), max_new_tokens=max(4_096, n_tokens))
    demo, services = app.start(Settings(checkpoints=(str(character_checkpoint()),), port=port, limits=limits))
    services.served.load()
    (loaded,) = services.served.models.values()
    engine: Engine = free_engine(n_steps)(loaded, max_batch=limits.max_batch, max_waiting=limits.max_waiting)
    services.engines.make_reader = None
    services.engines.add(loaded, engine)
    cores = sorted(os.sched_getaffinity(0))
    spent: dict[str, int] = {}
    try:
        clients(port, n_clients, 50, cores[0])  # initialise everything that the first request creates
        with ExitStack() as stack:
            pin(cores[-1])
            stack.callback(pin, *cores)
            if by_part:
                stack.enter_context(timed(spent))
            written, before = engine.tokens_written, time.process_time()
            heard = clients(port, n_clients, n_tokens, cores[0])
            seconds = time.process_time() - before
            n, spent_then = engine.tokens_written - written, dict(spent)
    finally:
        services.close()
        demo.close(verbose=False)
    parts = {part: spent_then[part] / n / 1000 for part in PARTS if part in spent_then}
    if by_part:
        parts["engine"] -= parts["handing over"] + parts["text"]  # both run within its steps
        parts["event loop and the rest"] = 1e6 * seconds / n - sum(parts.values())
    return Cost(1e6 * seconds / n, parts, heard["tokens_per_second"], n / heard["events"])


def pin(*cores: int) -> None:
    """Restrict all threads of this process to these cores."""
    for thread in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(thread.name), cores)


def clients(port: int, n: int, n_tokens: int, core: int) -> dict[str, float]:
    """The measurements of ``n`` clients in another process."""
    command = [sys.executable, "-m", "bench.outside", "--clients", str(port), str(n), str(n_tokens), str(core)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    heard: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return heard


def listen(port: int, n: int, n_tokens: int, core: int) -> None:
    """Run the clients, and print their measurements."""
    from bench.load import completions

    os.sched_setaffinity(0, {core})
    load = completions(port, ["ROMEO:\n" + chr(ord("A") + i % 26) for i in range(n)], n_tokens, 0.1, context_shift=True)
    events = sum(len(client.times) for client in load.clients)
    print(json.dumps({"tokens_per_second": load.rate, "events": events}))


def rows(n_clients: Sequence[int]) -> list[Row]:
    found = []
    for n in n_clients:
        whole, split = measure(n, by_part=False), measure(n, by_part=True)
        case = f"outside the model, {n} client" + "s" * (n > 1)
        found.append(Row(case, "us/token", whole.microseconds, "less", bar=BAR if n > 1 else None))
        found += [Row(f"{case}: {part}", "us/token", cost, "less") for part, cost in split.parts.items()]
        found.append(Row(f"{case}: tokens in an event", "tokens", whole.tokens_per_event, "more"))
        found.append(Row(f"{case}: heard, of {n * STEPS[n]:,} a second", "tokens/s", whole.tokens_per_second, "more"))
    return found


def main() -> None:
    made = parser(__doc__ or "")
    made.add_argument("--clients", nargs=4, type=int, metavar=("PORT", "N", "TOKENS", "CORE"))
    given = made.parse_args()
    if given.clients:
        listen(*given.clients)
    else:
        report("outside", rows([16] if given.quick else [1, 16, 64]))


if __name__ == "__main__":
    main()
