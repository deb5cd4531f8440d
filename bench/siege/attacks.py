"""Attacks on a public server, each a bounded number of requests from one or many addresses."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import cycle, product
from typing import Any

from .targets import LONG_ID, LONG_TOKEN, MANY_STEPS, N_STEPS
from .visitors import LENSES, check
from .wire import BAD, Session, ask, connect, opened, request

AT_ONCE = 50
ADDRESSES = [f"127.0.1.{i}" for i in range(1, 9)]
RECEIVE_BUFFER = 4_096  # bytes of an attacker
LONG_TEXT = {"prompt": "ROMEO:", "max_new_tokens": 1_000, "temperature": 0.8, "context_shift": True}
CALL = ["ROMEO:", None, 4_000, 1.0, None, 1.0, 0.0, 1]  # of /generate
EMPTY = b"[" + b",".join([b"[]"] * 86_000) + b"]"
HEAD = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
STALLED = [
    b"",
    HEAD,
    HEAD + b'Content-Length: 200\r\n\r\n{"prompt":',
    b"POST /gradio_api/queue/join HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200\r\n\r\n{",
    b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
]
BOUNDARY = {"Content-Type": "multipart/form-data; boundary=x"}
FILE = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\n' + b"z" * 60_000 + b"\r\n--x--\r\n"

Attack = Callable[[int, float], Awaitable[None]]  # on a port, for about this many seconds


async def together(count: int, one: Callable[[int], Awaitable[object]]) -> None:
    """Run ``one(0)`` to ``one(count - 1)``, a few at a time, ignoring failures."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def guarded(i: int) -> None:
        async with gate:
            await one(i)

    await asyncio.gather(*map(guarded, range(count)), return_exceptions=True)


@asynccontextmanager
async def many_open(
    port: int, sent: list[bytes], small: bool = False, sources: Sequence[str] = (BAD,)
) -> AsyncIterator[None]:
    """A connection for each of ``sent``, from ``sources`` in turn, on which nothing is read."""
    async with AsyncExitStack() as stack:
        for content, source in zip(sent, cycle(sources), strict=False):
            try:
                reader, writer = await connect(port, source, RECEIVE_BUFFER if small else None)
            except OSError:
                continue
            stack.callback(abort, reader, writer)
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(content)
        yield


def abort(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Close a connection. asyncio closes one once neither its reader nor its writer is referenced."""
    writer.transport.abort()


async def answers_not_collected(port: int, seconds: float) -> None:
    """Calls to Gradio's endpoints whose responses are never requested."""

    async def join(i: int) -> None:
        name, data = (("tokenize", ["a" * 20_000, None]), ("attention", ["a" * 256, None, 0, 0]))[i % 2]
        await ask(port, "POST", f"/gradio_api/call/{name}", {"data": data}, BAD)

    await together(1_000, join)
    await asyncio.sleep(seconds)


async def texts_not_followed(port: int, seconds: float) -> None:
    await together(1_000, lambda _: ask(port, "POST", "/gradio_api/call/generate", {"data": CALL}, BAD))
    await asyncio.sleep(seconds)


async def answers_not_read(port: int, seconds: float, sources: Sequence[str] = (BAD,)) -> None:
    """Requests for the attention of whole texts, as JSON and as safetensors, whose responses are not read."""
    bodies = [{"prompt": "a" * 256}, {"prompt": "a" * 256, "format": "safetensors"}]
    sent = [request("POST", "/v1/attention", bodies[i // len(sources) % 2]) for i in range(300)]
    async with many_open(port, sent, small=True, sources=sources):
        await asyncio.sleep(seconds)


async def answers_not_read_by_many(port: int, seconds: float) -> None:
    """The same from several addresses, which use up the whole budget."""
    await answers_not_read(port, seconds, ADDRESSES)


async def texts_not_read(port: int, seconds: float) -> None:
    """Texts for the page with all heads recorded, whose responses are not read."""
    async with many_open(port, [request("POST", "/look/write", LONG_TEXT)] * 200, small=True):
        await asyncio.sleep(seconds)


async def traces(port: int, _seconds: float) -> None:
    """Hundreds of different texts for the page."""
    body = {"model": None, "max_new_tokens": 240, "temperature": 0.8}
    await together(150, lambda i: ask(port, "POST", "/look/write", body | {"prompt": "ROMEO:", "seed": i}, BAD))


async def uploads(port: int, _seconds: float) -> None:
    await together(500, lambda _: ask(port, "POST", "/gradio_api/upload", FILE, BAD, BOUNDARY))


async def crowd_on_the_page(port: int, seconds: float) -> None:
    """A hundred long texts from one address, all of them read."""
    await crowd(port, [request("POST", "/look/write", LONG_TEXT)] * 100, seconds)


async def crowd_on_gradio(port: int, seconds: float) -> None:
    """The same through Gradio's queue."""
    events: list[str] = []

    async def join(_: int) -> None:
        answer = await ask(port, "POST", "/gradio_api/call/generate", {"data": CALL}, BAD)
        if answer.status == 200:
            events.append(str(answer.json["event_id"]))

    await together(100, join)
    await crowd(port, [request("GET", f"/gradio_api/call/generate/{event}") for event in events], seconds)


async def crowd_on_mcp(port: int, seconds: float) -> None:
    """The same through MCP's tools."""
    call = {"name": "generate", "arguments": {"prompt": "ROMEO:", "max_new_tokens": 4_000}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    headers = {"Accept": "application/json, text/event-stream"}
    await crowd(port, [request("POST", "/gradio_api/mcp/", body, headers)] * 100, seconds)


async def crowd(port: int, sent: list[bytes], seconds: float) -> None:
    async def read(content: bytes) -> None:
        async with opened(port, content, BAD) as reader:
            while await reader.read(65_536):
                pass

    await for_seconds(seconds, [read(content) for content in sent])


async def crowd_on_the_chat_template(port: int, seconds: float) -> None:
    """Long conversations, one after the other on forty connections, which the chat template makes into prompts."""
    body = {"messages": [{"role": "user", "content": ""}] * 800, "max_tokens": 1}
    until = asyncio.get_running_loop().time() + seconds

    async def converse(_: int) -> None:
        while asyncio.get_running_loop().time() < until:
            await ask(port, "POST", "/v1/chat/completions", body, BAD)

    await together(40, converse)


async def long_tokens(port: int, seconds: float) -> None:
    """Texts of a token with 50,000 characters, written over and over, from the model that has it."""
    body = {"model": LONG_TOKEN, "prompt": "a", "max_tokens": 4_000, "context_shift": True}
    body |= {"logit_bias": {str(LONG_ID): 100}}
    await crowd(port, [request("POST", "/v1/completions", body)] * 10, seconds)


async def lessons_of_many_steps(port: int, seconds: float) -> None:
    """The lesson about induction for models with many steps, each of which it reads unless positions are rotary.

    Raises ``ConnectionError`` if one is neither answered nor refused.
    """
    until = asyncio.get_running_loop().time() + seconds
    for model, step in cycle(product(MANY_STEPS, range(0, N_STEPS, 7))):
        if asyncio.get_running_loop().time() > until:
            break
        body = {"model": model, "sentence": "To be, or not to be", "step": step, "muted": [0, 0]}
        answer = await ask(port, "POST", "/learn/induction", body, BAD)
        if answer.status not in (400, 429):
            check("the lesson about induction", answer)


async def hopeless_questions(port: int, seconds: float) -> None:
    """Four clients ask over and over what takes far too long. Raises ``ConnectionError`` if a fifth is not answered."""
    body = {"prompts": [f"{'ROMEO: ' * 35}{i}" for i in range(1_000)]}

    async def insist(source: str) -> None:
        while True:
            await ask(port, "POST", "/v1/lens/knockout/prompts", body, source)
            await asyncio.sleep(0.1)

    asking = [asyncio.ensure_future(insist(source)) for source in ADDRESSES[:4]]
    await asyncio.sleep(min(seconds / 2, 10.0))  # until all four have begun
    try:
        question = {"prompt": "ROMEO:", "layer": 1, "head": 0}
        check("a fifth client's question", await ask(port, "POST", "/v1/lens/head", question, ADDRESSES[4]))
    finally:
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)


async def made_up_addresses(port: int, _seconds: float) -> None:
    """Another ``X-Forwarded-For`` for each request."""
    body = {"prompt": "a", "max_tokens": 200}

    async def one(i: int) -> None:
        headers = {"X-Forwarded-For": f"10.{i % 200}.{i // 200}.1"}
        await ask(port, "POST", "/v1/completions", body, BAD, headers)

    await together(600, one)


async def silent_connections(port: int, seconds: float) -> None:
    """More connections than 1,024 file descriptors: silent, with partial requests, and idle."""
    sent = [STALLED[i % len(STALLED)] for i in range(1_060)]
    async with many_open(port, sent):
        await asyncio.sleep(seconds)


async def heavy_bodies(port: int, _seconds: float) -> None:
    """Long, deeply nested and invalid lists."""
    bodies = [
        ("/look/again/rows", b'{"sha256":"x","n_prompt":1,"ids":%s}' % EMPTY),
        ("/look/differences", b'{"pieces":%s}' % EMPTY),
        ("/v1/attention", b'{"prompt":"a","heads":%s}' % EMPTY),
        ("/v1/completions", b'{"prompt":%s}' % EMPTY),
        ("/look/write", b'{"prompt":%s}' % EMPTY),
        ("/learn/self-attention", b'{"factor":NaN}'),
        ("/gradio_api/call/tokenize", b'{"data":[%s,null]}' % EMPTY),
    ]
    await together(200, lambda i: ask(port, "POST", *bodies[i % len(bodies)], BAD))


async def everything_at_once(port: int, seconds: float) -> None:
    """Questions of Ask, attention weights, every head of many texts, and trainings, from several addresses."""
    requests = list(LENSES.items())

    async def one(i: int) -> None:
        source, (path, fields) = ADDRESSES[i % len(ADDRESSES)], requests[i % len(requests)]
        prompt = "ROMEO:" + chr(ord("a") + i % 26) * (1 + i % 240)
        await ask(port, "POST", path, fields | {"prompt": prompt} if "prompt" in fields else fields, source)
        written = await ask(port, "POST", "/look/write", {"prompt": "ROMEO:", "max_new_tokens": 240, "seed": i}, source)
        run = re.search(rb'"run":"([^"]+)"', written.body)
        for head in range(48) if run else ():
            await ask(port, "GET", f"/look/{run[1].decode()}/heads/{head // 8}/{head % 8}", source=source)

    for source in ADDRESSES[:2]:
        await ask(port, "POST", "/train/text?size=large", b"To be, or not to be. " * 20_000, source)
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await together(1_000, one)


async def chunks(port: int, seconds: float, n_connections: int = 16) -> None:
    """Bodies below the size limit, in chunks of one byte."""

    async def send(_: int) -> None:
        while True:
            with suppress(OSError):
                reader, writer = await connect(port, BAD)
                try:
                    writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
                    for _piece in range(31):
                        writer.write(b"1\r\n \r\n" * 8_192)
                        await writer.drain()
                    writer.write(b"0\r\n\r\n")
                    await reader.read(100)
                finally:
                    writer.transport.abort()
            await asyncio.sleep(0.02)

    await for_seconds(seconds, [send(i) for i in range(n_connections)])


async def chunks_on_every_connection(port: int, seconds: float) -> None:
    """The same on nearly as many connections as a client may have, against the watchdog."""
    await chunks(port, seconds, n_connections=220)


async def pipelined_requests(port: int, seconds: float) -> None:
    """Thousands of requests at once on each connection, with many fields, which are read slowly."""
    content = (b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"a:\r\n" * 100 + b"\r\n") * 2_000
    async with many_open(port, [content] * 100):
        await asyncio.sleep(seconds)


async def page_loads(port: int, seconds: float) -> None:
    """The page and what Gradio says of itself, on fifty connections without a pause."""

    async def load(i: int) -> None:
        session = Session(port, BAD)
        try:
            while True:
                await session.ask("GET", ("/", "/config", "/gradio_api/info", "/theme.css")[i % 4])
        finally:
            session.close()

    await for_seconds(seconds, [load(i) for i in range(50)])


async def slow_readers(port: int, seconds: float) -> None:
    """Attention weights of whole texts for two addresses, which read often enough not to be stalled."""
    content = request("POST", "/v1/attention", {"prompt": "a" * 256, "format": "safetensors"})

    async def read(i: int) -> None:
        while True:
            with suppress(OSError):
                reader, writer = await connect(port, ADDRESSES[i % 2], RECEIVE_BUFFER)
                try:
                    writer.transport.pause_reading()  # type: ignore[attr-defined]
                    writer.write(content)
                    while not writer.is_closing():
                        await asyncio.sleep(3)
                        writer.transport.resume_reading()  # type: ignore[attr-defined]
                        await asyncio.sleep(0)
                        writer.transport.pause_reading()  # type: ignore[attr-defined]
                        if reader.at_eof():
                            break
                finally:
                    writer.transport.abort()
            await asyncio.sleep(0.5)

    await for_seconds(seconds, [read(i) for i in range(240)])


async def for_seconds(seconds: float, works: list[Coroutine[Any, Any, None]]) -> None:
    """Run ``works``, none of which ends by itself, for some seconds, ignoring failures."""
    running = [asyncio.ensure_future(work) for work in works]
    await asyncio.wait(running, timeout=seconds)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)


ATTACKS: dict[str, Attack] = {
    "answers not collected": answers_not_collected,
    "texts not followed": texts_not_followed,
    "answers not read": answers_not_read,
    "answers not read by many": answers_not_read_by_many,
    "texts not read": texts_not_read,
    "traces": traces,
    "uploads": uploads,
    "a crowd on the page": crowd_on_the_page,
    "a crowd on Gradio": crowd_on_gradio,
    "a crowd on MCP": crowd_on_mcp,
    "a crowd on the chat template": crowd_on_the_chat_template,
    "long tokens": long_tokens,
    "lessons of many steps": lessons_of_many_steps,
    "hopeless questions": hopeless_questions,
    "made-up addresses": made_up_addresses,
    "silent connections": silent_connections,
    "heavy bodies": heavy_bodies,
    "chunks of one byte": chunks,
    "chunks of one byte on every connection": chunks_on_every_connection,
    "pipelined requests": pipelined_requests,
    "page loads": page_loads,
    "slow readers": slow_readers,
    "everything at once": everything_at_once,
}
