"""A crowd on the page: many visitors at once, each from an address of its own, and what each of them sees.

    python -m bench.crowd [--quick] [--visitors N [N ...]]
    python -m bench.crowd --class [N]

Linux only: visitors come from different addresses of the loopback network. Each does what the page does: it streams a
text of 200 tokens, plays it at the page's speed, fetching thumbnails and the open head as it goes, opens another head
every few seconds, asks a question now and then, and starts over with another text. A fetch is *computed twice* if the
server no longer keeps what it recorded and has to read the text again. Visitors and server share the machine's cores.

With ``--class``, N students (30 unless given) of one school, so with one address, open one link to a rung of Learn in
one minute, and each presses the button of Train as soon as the rung's numbers are there.
"""

import asyncio
import itertools
import random
import re
import struct
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import orjson

from bench.harness import Row, character_checkpoint, free_port, parser, report
from bench.load import at_quantile
from bench.process import MB, Server, ours, serving, wait_for_loops
from bench.seeds import sample_text
from bench.siege.visitors import warm_up
from bench.siege.wire import Session, opened, request
from model.lens.head_roles import threshold
from web.assets import URL

N_TOKENS = 200
READING_PACE = 10.0  # tokens per second: the least for each text
PACE = 20.0  # tokens per second at which the page shows a text
SOON, LATER = 0.5, 1.5  # seconds of playback: if less than one is there, rows up to the other are fetched
ARRIVAL = 2.0  # seconds within which all visitors arrive
CLASS_ARRIVAL = 60.0  # seconds within which a class arrives
N_HEADS, SECONDS_A_HEAD = 5, 3.0  # heads opened once a text is shown, and for how long
ASKING = 5  # one visitor in so many asks a question about each text
QUESTIONS = ("attribution", "logit-lens", "knockout")
SETTINGS = {"max_new_tokens": N_TOKENS, "temperature": 0.8}
READ_AGAIN = re.compile(rb"^headscope_read_again_total (\S+)", re.MULTILINE)


@dataclass
class Seen:
    """What all visitors saw; times in seconds."""

    first_token: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)  # tokens per second of each text, from the request on
    heads: list[float] = field(default_factory=list)  # fetches of a head's weights
    answers: list[float] = field(default_factory=list)
    n_not_kept: int = 0  # fetches of a head that got 404
    errors: Counter[str] = field(default_factory=Counter)


class Failed(Exception):
    """A request that a visitor did not get an answer to."""


class Visitor:
    """One visitor, with an address of its own."""

    def __init__(self, number: int, port: int, seen: Seen) -> None:
        self.number, self.port, self.seen = number, port, seen
        self.source = f"127.0.{2 + number // 250}.{1 + number % 250}"
        self.session, self.random = Session(port, self.source), random.Random(number)
        self.pointer: dict[str, Any] = {}
        self.ids: list[int] = []  # as far as they have been fetched, with the rows
        self.head, self.n_rows, self.n_weights, self.is_kept = (0, 0), 0, 0, True

    async def stay(self, until: float) -> None:
        """Arrive, look at the opening, and write one text after the other until ``until`` (``time.monotonic()``)."""
        try:
            await asyncio.sleep(self.random.uniform(0, ARRIVAL))
            self.begin(orjson.loads(await self.get("/look/landing"))["pointer"])
            await self.fetch(self.pointer["rows"])
            for seed in itertools.count():
                await self.write_and_look(self.number * 1_000 + seed)
                if time.monotonic() > until:
                    return
        except (Failed, OSError) as error:
            self.seen.errors[str(error)] += 1
        finally:
            self.session.close()

    def begin(self, pointer: dict[str, Any]) -> None:
        self.pointer, self.ids = pointer, []
        self.n_rows = self.n_weights = 0
        self.is_kept = True

    async def write_and_look(self, seed: int) -> None:
        """Write a text and play it, then open other heads, and perhaps ask."""
        written = asyncio.create_task(self.write(seed))
        try:
            await self.play(written.done)
        finally:
            await written
        for _ in range(N_HEADS):
            self.head, self.n_weights = (self.random.randrange(6), self.random.randrange(8)), 0
            await self.fetch(self.pointer["rows"])
            await asyncio.sleep(SECONDS_A_HEAD)
        if self.number % ASKING == 0:
            await self.question(QUESTIONS[seed % len(QUESTIONS)])

    async def write(self, seed: int) -> None:
        """Follow the stream of a text, and note when its first and its last token come."""
        began, n_written = time.perf_counter(), 0
        self.pointer = {}
        body = {"prompt": "ROMEO:", "model": None, "seed": seed} | SETTINGS
        async with opened(self.port, request("POST", "/look/write", body), self.source) as reader:
            while line := await reader.readline():
                if not line.startswith(b"data: "):
                    continue
                pointer = orjson.loads(line[6:])
                if pointer["run"] != self.pointer.get("run"):
                    self.begin(pointer)
                self.pointer = pointer
                if pointer["written"] and not n_written:
                    self.seen.first_token.append(time.perf_counter() - began)
                n_written = pointer["written"]
        if n_written < N_TOKENS:
            raise Failed(f"a text ended after {n_written} tokens: {self.pointer.get('why', '')}")
        self.seen.rates.append(n_written / (time.perf_counter() - began))

    async def play(self, is_written: Callable[[], bool]) -> None:
        """Show the text at the page's pace, a little after it is written."""
        began, shown = time.perf_counter(), 0
        while not is_written() or shown < self.pointer["tokens"]:
            known = self.pointer.get("rows", 0)
            shown = min(int((time.perf_counter() - began) * PACE), self.pointer.get("tokens", 0))
            if not shown:
                began = time.perf_counter()
            if self.n_rows < min(known, shown + SOON * PACE):
                await self.fetch(min(known, int(shown + LATER * PACE)))
            await asyncio.sleep(SOON / 4)

    async def fetch(self, until: int) -> None:
        """Fetch the rows that are missing up to ``until``, then those of the open head."""
        if self.n_rows < until:
            content = await self.of_run(f"rows?start={self.n_rows}&until={until}")
            (length,) = struct.unpack_from("<I", content)
            header = orjson.loads(content[4 : 4 + length])
            self.ids[self.n_rows :] = header["ids"]
            self.n_rows = header["rows"]
        began = time.perf_counter()
        path = f"heads/{self.head[0]}/{self.head[1]}?start={self.n_weights}&until={self.n_rows}"
        content = await self.of_run(path, counts=True)
        self.seen.heads.append(time.perf_counter() - began)
        n_floats = len(content) // 4 + self.n_weights * (self.n_weights + 1) // 2
        self.n_weights = int((2 * n_floats + 0.25) ** 0.5)

    async def of_run(self, path: str, *, counts: bool = False) -> bytes:
        """The bytes of the text shown; if the server does not keep it, from the token ids, as the page does."""
        if self.is_kept:
            answer = await self.session.ask("GET", f"/look/{self.pointer['run']}/{path}")
            if answer.status == 200:
                return answer.body
            if answer.status != 404:
                raise Failed(f"a fetch of {path.partition('/')[0]} got {answer.status}")
            self.is_kept = False
        self.seen.n_not_kept += counts
        known = {"sha256": self.pointer["sha256"], "ids": self.ids, "n_prompt": self.pointer["n_prompt"]}
        return await self.get(f"/look/again/{path}", known)

    async def question(self, name: str) -> None:
        began = time.perf_counter()
        await self.get(f"/v1/lens/{name}", {"tokens": self.ids, "model": self.pointer["model"]})
        self.seen.answers.append(time.perf_counter() - began)

    async def get(self, path: str, body: object = None) -> bytes:
        answer = await self.session.ask("GET" if body is None else "POST", path, body, timeout=180.0)
        if answer.status != 200:
            raise Failed(f"{path} got {answer.status}: {answer.body[:200]!r}")
        return answer.body


async def come(server: Server, n_visitors: int, seconds: float) -> Seen:
    """Have visitors come, each for at least this long."""
    seen, until = Seen(), time.monotonic() + seconds
    await asyncio.gather(*(Visitor(i, server.port, seen).stay(until) for i in range(n_visitors)))
    return seen


async def n_read_again(port: int) -> float:
    """How often the server has read a text again because its weights were no longer kept."""
    session = Session(port, "127.0.0.1")
    found = READ_AGAIN.search((await session.ask("GET", "/metrics")).body)
    session.close()
    return float(found[1]) if found else 0.0


def rows_of(server: Server, n_visitors: int, seconds: float) -> list[Row]:
    """What this many visitors see."""
    before, began, cpu = asyncio.run(n_read_again(server.port)), time.monotonic(), server.cpu_seconds
    own = time.process_time()
    server.forget_highest()
    seen = asyncio.run(come(server, n_visitors, seconds))
    busy, own, took = server.cpu_seconds - cpu, time.process_time() - own, time.monotonic() - began
    twice = seen.n_not_kept + asyncio.run(n_read_again(server.port)) - before
    for error, count in seen.errors.items():
        print(f"{n_visitors} visitors: {error} ({count} times)")

    def row(case: str, unit: str, value: float, better: str, bar: float | None = None) -> Row:
        return Row(f"{n_visitors} visitors: {case}", unit, value, better, bar=bar)

    return [
        row("texts written", "texts", len(seen.rates), "more"),
        row("errors", "", seen.errors.total(), "less", 0),
        row("first token, p50", "s", at_quantile(seen.first_token, 0.5), "less"),
        row("first token, p95", "s", at_quantile(seen.first_token, 0.95), "less", 2),
        row("rate of a text, lowest", "tokens/s", min(seen.rates), "more", READING_PACE),
        row("rate of a text, p5", "tokens/s", at_quantile(seen.rates, 0.05), "more"),
        row("fetches of a head, p95", "s", at_quantile(seen.heads, 0.95), "less"),
        row("of these, computed twice", "%", 100 * twice / len(seen.heads), "less", 5),
        row("answer of Ask, p95", "s", at_quantile(seen.answers, 0.95), "less"),
        row("processor time of the server for a text", "s", busy / len(seen.rates), "less"),
        row("cores that the server kept busy", "", busy / took, "less"),
        row("cores that the visitors kept busy", "", own / took, "less"),
        row("memory at its highest", "MB", server.highest / MB, "less"),
    ]


@dataclass
class InClass:
    """What the students of a class saw; times in seconds since they opened the link."""

    numbers: list[float] = field(default_factory=list)  # of the rung
    begun: list[float] = field(default_factory=list)  # their training
    trained: list[float] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)
    n_clear: int = 0  # models with a head that has a clear role
    n_refused: int = 0


async def study(port: int, text: bytes, arrival: float, seen: InClass) -> None:
    """Open a link to rung 5, then train on the sample text and wait for the model."""
    await asyncio.sleep(arrival)
    began = time.monotonic()
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=3_600) as browser:
        for path in ("/", *(f"/{URL}/{name}.mjs" for name in ("look", "later", "learn", "train"))):
            (await browser.get(path)).raise_for_status()
        lesson = {"sentence": "The kite flew over the hill"}
        (await browser.post("/learn/self-attention", json=lesson)).raise_for_status()
        seen.numbers.append(time.monotonic() - began)
        began = time.monotonic()
        started = await browser.post("/train/text?size=small", content=text)
        if started.status_code != 200:
            seen.n_refused += 1
            return
        is_clear = False
        async with browser.stream("GET", "/train/events") as stream:
            async for line in stream.aiter_lines():
                event = orjson.loads(line[6:]) if line.startswith("data: ") else {}
                if event.get("kind") == "start":
                    seen.begun.append(time.monotonic() - began)
                elif event.get("kind") == "snapshot" and event["heads"]:
                    scores = [event["heads"][role] for role in ("previous_token", "duplicate_token", "induction")]
                    highest = max(score for role in scores for layer in role for score in layer)
                    is_clear = highest >= threshold(event["heads"]["uniform"])
                elif event.get("kind") == "end":
                    seen.steps.append(event["step"])
        seen.trained.append(time.monotonic() - began)
        seen.n_clear += is_clear


async def teach(port: int, n_students: int) -> InClass:
    """Have a class come within a minute."""
    seen, text, drawn = InClass(), sample_text().encode(), random.Random(1)
    await asyncio.gather(*(study(port, text, drawn.uniform(0, CLASS_ARRIVAL), seen) for _ in range(n_students)))
    return seen


def class_rows(port: int, n_students: int) -> list[Row]:
    """What the students of a class see."""
    seen = asyncio.run(teach(port, n_students))

    def row(case: str, unit: str, value: float, better: str = "less") -> Row:
        return Row(f"{n_students} students: {case}", unit, value, better)

    return [
        row("numbers of the rung, p50", "s", at_quantile(seen.numbers, 0.5)),
        row("numbers of the rung, longest", "s", max(seen.numbers)),
        row("trainings refused", "", seen.n_refused),
        row("training begins after, p50", "s", at_quantile(seen.begun, 0.5)),
        row("training begins after, longest", "s", max(seen.begun)),
        row("model ready after, p50", "s", at_quantile(seen.trained, 0.5)),
        row("model ready after, longest", "s", max(seen.trained)),
        row("steps of a training, p50", "steps", at_quantile(seen.steps, 0.5), "more"),
        row("models with a clear role", "", seen.n_clear, "more"),
    ]


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--visitors", type=int, nargs="+", default=[60, 100], metavar="N")
    options.add_argument("--class", type=int, nargs="?", const=30, dest="students", metavar="N")
    chosen = options.parse_args()
    port, rows = free_port(), []
    with serving(ours(port, "--checkpoint", str(character_checkpoint())), port) as server:
        wait_for_loops(port)
        asyncio.run(warm_up(port))
        if chosen.students:
            rows = class_rows(port, chosen.students)
        for n_visitors in [] if chosen.students else chosen.visitors:
            rows += rows_of(server, n_visitors, 30.0 if chosen.quick else 90.0)
    report("crowd", rows)


if __name__ == "__main__":
    main()
