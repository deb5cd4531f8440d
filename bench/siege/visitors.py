"""Well-behaved visitors, and the effects that they notice."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from web.serving.engines import MOST_BATCH
from web.settings import Limits

from .wire import GOOD, Answer, ask, opened, request

LESSONS = ["tokens", "windows", "untrained-bigram", "averages", "self-attention", "trainable-weights"]
LESSONS += ["causal-masking", "many-heads", "block", "whole-model"]

PATIENCE = 20.0  # seconds after which a request is lost
N_RECORDED = 16  # texts of the page written at the same time
PAUSE = 0.5  # between two requests of one visitor
TEXT = {"prompt": "ROMEO:", "max_new_tokens": 20, "temperature": 0.8, "seed": 1}
CALL = {"data": ["ROMEO:", None, 20, 0.8, None, 1.0, 0.0, 1]}
WHOLE = {"prompt": "ROMEO: " * 30}
HEAD = {"layer": 1, "head": 0}
LENSES: dict[str, dict[str, object]] = {  # with the request for every question of Ask
    "/v1/attention": WHOLE,
    "/v1/embeddings": {"input": WHOLE["prompt"]},
    "/v1/lens/knockout": WHOLE,
    "/v1/lens/removal": WHOLE | {"heads": [[0, 0], [1, 1]]},
    "/v1/lens/attribution": WHOLE,
    "/v1/lens/logit-lens": WHOLE,
    "/v1/lens/head": WHOLE | HEAD,
    "/v1/lens/ledger": WHOLE | HEAD | {"query": 2, "key": 1},
    "/v1/lens/patch": {"prompt": "ROMEO: ab", "corrupted": "ROMEO: ac"},
    "/v1/lens/paths": WHOLE | HEAD,
    "/v1/lens/patch-paths": HEAD | {"prompt": "ROMEO: ab", "corrupted": "ROMEO: ac"},
    "/v1/lens/difference": {"prompt": "ROMEO: ab", "other": "ROMEO: ac"},
    "/v1/lens/passages": {"text": "ROMEO: " * 300},
    **{f"/learn/{key}": {"sentence": "To be or not to be"} for key in LESSONS},
}
ABOUT_MODEL = ("/v1/lens/roles", "/v1/lens/composition", "/v1/lens/role-paths?layer=1&head=0")
MAX_SECONDS = 180.0  # seconds that a question may take on a busy machine


@dataclass
class Noticed:
    """The requests of all good visitors."""

    served: int = 0
    lost: list[str] = field(default_factory=list)
    first_token: list[float] = field(default_factory=list)  # seconds


async def first_line(port: int, sent: bytes, mark: bytes) -> None:
    """Return with the first line that holds ``mark``; raises ``ConnectionError`` if there is none."""
    async with opened(port, sent, GOOD) as reader:
        while line := await reader.readline():
            if mark in line:
                return
    raise ConnectionError("the answer ended")


async def from_v1(port: int) -> None:
    body = {"prompt": "ROMEO:", "max_tokens": 20, "stream": True}
    await first_line(port, request("POST", "/v1/completions", body), b'data: {"')


async def from_chat(port: int) -> None:
    body = {"messages": [{"role": "user", "content": "ROMEO:"}], "max_tokens": 20, "stream": True}
    await first_line(port, request("POST", "/v1/chat/completions", body), b'data: {"')


async def from_page(port: int) -> None:
    await first_line(port, request("POST", "/look/write", TEXT), b'"writing"')


async def from_gradio(port: int) -> None:
    answer = await ask(port, "POST", "/gradio_api/call/generate", CALL, GOOD, timeout=PATIENCE)
    check("joining", answer)
    path = f"/gradio_api/call/generate/{answer.json['event_id']}"
    await first_line(port, request("GET", path), b"event: generating")


async def warm_up(port: int) -> None:
    """Use every feature and every slot of the batch once, so that all memory a server keeps is allocated."""
    noticed, rounds = Noticed(), iter((False, True))
    await visit(port, noticed, lambda: next(rounds))
    body = request("POST", "/look/write", TEXT | {"max_new_tokens": 240})
    await asyncio.gather(*(first_line(port, body, b'"done"') for _ in range(N_RECORDED)))
    n = Limits().max_choices
    body = request("POST", "/v1/completions", {"prompt": WHOLE["prompt"], "max_tokens": 40, "n": n, "stream": True})
    await asyncio.gather(*(first_line(port, body, b"[DONE]") for _ in range(0, MOST_BATCH, n)))
    for path, fields in LENSES.items():
        check(path, await ask(port, "POST", path, fields, GOOD, timeout=MAX_SECONDS))
    for path in ABOUT_MODEL:
        check(path, await ask(port, "GET", path, source=GOOD, timeout=MAX_SECONDS))


async def look_around(port: int) -> None:
    for path in ("/health", "/", "/v1/models"):
        check(path, await ask(port, "GET", path, source=GOOD, timeout=PATIENCE))


def check(path: str, answer: Answer) -> None:
    if answer.status != 200:
        raise ConnectionError(f"{path} was answered with {answer.status}")


WRITERS: dict[str, Callable[[int], Coroutine[Any, Any, None]]] = {
    "/v1": from_v1,
    "a conversation": from_chat,
    "the page": from_page,
    "Gradio": from_gradio,
}


async def visit(port: int, noticed: Noticed, until: Callable[[], bool]) -> None:
    """Request texts through every interface, and browse, one after the other."""
    while not until():
        for name, write in WRITERS.items():
            began = time.perf_counter()
            if await well(noticed, name, write(port)):
                noticed.first_token.append(time.perf_counter() - began)
        await well(noticed, "looking around", look_around(port))
        await asyncio.sleep(PAUSE)


async def well(noticed: Noticed, name: str, asking: Coroutine[Any, Any, None]) -> bool:
    try:
        await asyncio.wait_for(asking, PATIENCE)
    except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError) as error:
        noticed.lost.append(f"{name}: {type(error).__name__} {error}")
        return False
    noticed.served += 1
    return True
