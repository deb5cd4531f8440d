"""No request blocks the event loop for others, whatever its body."""

import asyncio
import gc
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from helpers.server import Server
from web.serving.process_memory import freeze_objects
from web.settings import Limits

pytestmark = pytest.mark.timing

MAX_SECONDS = 0.05  # seconds for which one request may occupy the shared event loop
ADDRESSES = itertools.count()
ATTEMPTS = 10  # attempts, of which the best counts, since a busy machine halts the loop as well
EMPTY = b"[" + b",".join([b"[]"] * 86_000) + b"]"
ROWS = b"[" + b",".join([b"[1]"] * 65_000) + b"]"
NUMBERS = b"[" + b",".join([b"0"] * 125_000) + b"]"
DEEP = b"[" * 125_000 + b"]" * 125_000
BIASES = b"{" + b",".join(b'"%d":1' % i for i in range(22_000)) + b"}"
MESSAGES = b"[" + b",".join([b'{"role":"user","content":"a"}'] * 8_000) + b"]"


def text(sha256: bytes, **fields: bytes) -> bytes:
    fields = {"sha256": b'"%s"' % sha256, "ids": b"[1]", "n_prompt": b"1"} | fields
    return b"{" + b",".join(b'"%s":%s' % (name.encode(), value) for name, value in fields.items()) + b"}"


SHA = b"SHA"
CASES: dict[str, tuple[str, bytes]] = {
    "empty lists for ids": ("look/again/rows", text(SHA, ids=EMPTY)),
    "numbers for ids": ("look/again/rows", text(SHA, ids=NUMBERS)),
    "a long head mask": ("look/again/rows", text(SHA, head_mask=ROWS)),
    "empty rows": ("look/again/rows", text(SHA, head_mask=EMPTY)),
    "pieces": ("look/differences", b'{"a":%s,"b":%s,"pieces":%s}' % (text(SHA), text(SHA), EMPTY)),
    "a reading": ("look/read", text(SHA, ids=EMPTY, model=b'"tiny"')),
    "a prompt": ("look/write", b'{"prompt":%s}' % EMPTY),
    "a model": ("look/write", b'{"prompt":"a","model":%s}' % EMPTY),
    "a branch": ("look/write", b'{"branch":{"sha256":"%s","model":"tiny","ids":%s}}' % (SHA, EMPTY)),
    "heads": ("v1/attention", b'{"prompt":"a","heads":%s}' % EMPTY),
    "the same layer": ("v1/attention", b'{"prompt":"a","layers":%s}' % NUMBERS),
    "a head mask": ("v1/completions", b'{"prompt":"a","head_mask":%s}' % ROWS),
    "prompts": ("v1/completions", b'{"prompt":%s}' % EMPTY),
    "token ids": ("v1/completions", b'{"prompt":%s}' % NUMBERS),
    "stop strings": ("v1/completions", b'{"prompt":"a","stop":%s}' % EMPTY),
    "biases": ("v1/completions", b'{"prompt":"a","logit_bias":%s}' % BIASES),
    "messages": ("v1/chat/completions", b'{"messages":%s}' % MESSAGES),
    "inputs": ("v1/embeddings", b'{"input":%s}' % EMPTY),
    "a matrix": ("learn/self-attention", b'{"x":%s}' % EMPTY),
    "depth": ("look/write", b'{"prompt":%s}' % DEEP),
    "a deep join": ("gradio_api/queue/join", b'{"session_hash":"x","fn_index":0,"data":%s}' % DEEP),
    "a join": ("gradio_api/queue/join", b'{"session_hash":"x","fn_index":0,"data":%s}' % EMPTY),
    "arguments": ("gradio_api/call/tokenize", b'{"data":[%s,null]}' % EMPTY),
}


@pytest.fixture(scope="module", autouse=True)
def settled() -> Iterator[None]:
    """As in a started server, where a garbage collection over all objects would halt the loop as well."""
    before = gc.get_threshold()
    freeze_objects()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)
    gc.collect()
    gc.freeze()  # again what was imported, without what was made here


@contextmanager
def longest_halt(server: Server) -> Iterator[Callable[[], float]]:
    """How long the server's event loop did nothing else, at most, while in here.

    On a busy machine that is the processor time of this process, whose threads can all keep the loop waiting: what
    other processes take is not its fault.
    """
    with httpx.Client(base_url=server.url) as client:
        client.get("/health")
        loop = next(iter(server.connections.open)).loop  # while it exists
    gaps = [0.0]

    async def beat() -> None:
        while True:
            began, used = time.perf_counter(), time.process_time()
            await asyncio.sleep(0.001)
            gaps.append(min(time.perf_counter() - began, time.process_time() - used))

    beating = asyncio.run_coroutine_threadsafe(beat(), loop)
    try:
        yield lambda: max(gaps)
    finally:
        beating.cancel()


def post(url: str, content: bytes) -> httpx.Response:
    """From a separate address, since the server reads large bodies of one address one after another."""
    address = f"127.0.1.{next(ADDRESSES) % 250 + 1}"
    with httpx.Client(transport=httpx.HTTPTransport(local_address=address), timeout=60) as client:
        return client.post(url, content=content, headers={"Content-Type": "application/json"})


@pytest.mark.parametrize("case", CASES)
def test_parsing_bodies_does_not_block_the_event_loop(server: Server, case: str) -> None:
    path, body = CASES[case]
    content = body.replace(SHA, server.served.models["tiny"].sha256.encode())
    assert len(content) < 262_144
    halts: list[float] = []
    while len(halts) < ATTEMPTS and not (halts and min(halts) < MAX_SECONDS):
        with longest_halt(server) as longest:
            answer = post(f"{server.url}/{path}", content)
            halts.append(longest())
        assert answer.status_code == 200 or (answer.status_code < 500 and len(answer.content) < 1_000)
    assert min(halts) < MAX_SECONDS


@pytest.mark.parametrize("path", ["v1/openapi.json", "", "config", "gradio_api/info", "gradio_api/openapi.json"])
def test_openapi_document_does_not_block_the_event_loop(server: Server, path: str) -> None:
    halts: list[float] = []
    while len(halts) < ATTEMPTS and not (halts and min(halts) < MAX_SECONDS):
        with longest_halt(server) as longest:
            assert httpx.get(f"{server.url}/{path}").status_code == 200
            halts.append(longest())
    assert min(halts) < MAX_SECONDS


ANSWERS: dict[str, Any] = {
    "gradio_api/call/tokenize": {"data": ["a" * Limits.max_prompt_characters, None]},
    "v1/completions": {"prompt": "a", "max_tokens": 60, "n": 16, "logprobs": 20},
    "v1/attention": {"prompt": "a" * 64},
    "v1/tokenize": {"prompt": "a" * Limits.max_prompt_characters},
}


@pytest.mark.slow
@pytest.mark.parametrize("path", ANSWERS)
def test_long_responses_do_not_block_the_event_loop(server: Server, path: str) -> None:
    halts: list[float] = []
    while len(halts) < ATTEMPTS and not (halts and min(halts) < MAX_SECONDS):
        with longest_halt(server) as longest:
            answer = httpx.post(f"{server.url}/{path}", json=ANSWERS[path], timeout=60)
            assert answer.status_code == 200
            if "gradio" in path:
                answer = httpx.get(f"{server.url}/{path}/{answer.json()['event_id']}")
                assert answer.status_code == 200 and len(answer.content) > 100_000
            halts.append(longest())
    assert min(halts) < MAX_SECONDS
