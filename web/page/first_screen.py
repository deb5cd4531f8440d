"""What the page's HTML contains in addition to Gradio's: style sheets, modules, and the first screen.

The page's modules draw the first screen before Gradio has started and the model is loaded.

A checkpoint may keep the first screen of its opening next to its weights, in ``first_screen.json``: the responses of
the routes that the page calls to draw it. ``python -m web.page.first_screen FOLDER ...`` writes the file. It is
used only with the weights that it was computed from.
"""

import argparse
import asyncio
import base64
import gzip
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import gradio as gr
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from model import CheckpointError, InputError, LoadedModel
from model.checkpoint.files import read_json
from model.checkpoint.weights import file_hash, weight_files
from model.lens.head_roles import describe_roles

from ..ask.head_roles import measure_roles
from ..assets import URL, main_module
from ..request_path import path_of
from ..runs.openings import FIRST_SCREEN
from ..runs.run import Run
from ..seams.gradio import address_of, theme_address, with_start_replaced
from ..services import Services, make_services
from ..settings import Settings
from .controls import CONTROLS
from .link import TEXT
from .link_preview import SENTENCE, TITLE, with_preview
from .model_list import model_list
from .pointers import opening_pointer

MAX_FIRST_SCREEN_BYTES = 2_000_000  # of a checkpoint's stored first screen
DIGITS = 4  # of what heads add and of the scores of their roles
MAX_FIRST_VOCABULARY = 8_192  # tokens; with more, the first screen shows no probabilities until the model is loaded

# What takes the place of Gradio's own script, whose fifty files would delay the first drawing.
GRADIO_LATER = rb'<script type="text/plain" id="hs-gradio" src="\1"></script>'
START = """<script type="module">
const gradio = document.getElementById("hs-gradio");
const startGradio = () => {
  const script = { type: "module", crossOrigin: "", src: gradio?.src };
  if (gradio) document.head.append(Object.assign(document.createElement("script"), script));
};
import("./MODULE").then((look) => look.start(startGradio)).catch(startGradio);
</script>"""
# Gradio serves these faces; their semi-bold files lack most letters, so that there are two weights.
FACES = "".join(
    f'@font-face {{ font-family: "IBM Plex {face}"; font-weight: {weights}; font-display: swap; '
    f'src: url("static/fonts/IBMPlex{face}/IBMPlex{face}-{name}.woff2") format("woff2"); }}\n'
    for face in ("Sans", "Mono")
    for name, weights in (("Regular", "100 500"), ("Bold", "501 900"))
)
HEAD = f"""<style>
{FACES}.gradio-container > .main > .wrap.full {{ visibility: hidden; }}
#hs-first {{ position: absolute; padding: 14px 50px; font: 18px/24px "IBM Plex Sans", sans-serif; }}
#hs-first p {{ margin: 40px 0 0 -2px; opacity: 0.75; }}
@media (width < 640px) {{
  #hs-first {{ padding: 12px 16px; font-size: 14px; line-height: 20px; }}
  #hs-first b {{ font-size: 17px; }}
  #hs-first p {{ margin: 86px 0 0; }}
}}
</style>"""
# To be read until style sheets and modules are there, where the page will show its name and what a GPT does.
FIRST = f"""<script>{{
  let theme = new URLSearchParams(location.search).get("__theme");
  try {{ theme = localStorage["headscope-theme"] || theme; }} catch {{ }} // storage may be forbidden
  const isDark = theme === "dark" || (theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.body.classList.toggle("dark", isDark); // as Gradio does later
}}</script><div id="hs-first"><b>{TITLE}</b><p>{SENTENCE}</p></div>"""
RUN = "prepared"  # stands for the id of the opening's run, which the server draws when it has the model


async def prepare(services: Services, name: str) -> dict[str, Any]:
    """What ``first_screen.json`` holds for a model that is loaded."""
    pointer: dict[str, Any] = await opening_pointer(services, name)
    opening, run = services.openings.get(name)
    layer, head = pointer["head"]
    answers = {
        "rows?start=0": run.frame(0),
        f"heads/{layer}/{head}?start=0": services.runs.exact.picture(run, layer, head, 0),
    }
    vocabulary: list[str] | None = None
    position = max(len(opening.ids) - 2, 0)
    answers[f"queries/{position}"] = services.runs.exact.query(run, position)
    if run.loaded.config.vocab_size <= MAX_FIRST_VOCABULARY:
        answers[f"logits/{position}?count=1"] = services.runs.exact.logits(run, position)
        vocabulary = [token.text for token in run.loaded.tokens(range(run.loaded.config.vocab_size))]
    return {
        "pointer": pointer | {"run": RUN, "rate": 0},
        "answers": {path: base64.b64encode(answer).decode() for path, answer in answers.items()},
        "vocabulary": vocabulary,
        "attribution": attribution_at(run, position),
        "roles": known_roles(services, run.loaded),
    }


def attribution_at(run: Run, position: int) -> dict[str, Any]:
    """What each head adds to the logit of the token after ``position``, layer by layer."""
    token = run.ids[min(position + 1, len(run.ids) - 1)]
    heads = run.loaded.attribution(run.ids, position=position, token=token).heads
    return {"position": position, "token": token, "heads": [round(value, DIGITS) for value in heads.flatten().tolist()]}


def known_roles(services: Services, loaded: LoadedModel) -> list[Any] | None:
    """What the heads of a model do, as the page is told; None if its context is too short to measure that."""
    try:
        roles = describe_roles(measure_roles(services.answers, loaded))["heads"]
    except InputError:
        return None
    rounded: list[Any] = json.loads(json.dumps(roles), parse_float=lambda number: round(float(number), DIGITS))
    return rounded


def read_prepared(services: Services, name: str) -> dict[str, Any] | None:
    """The first screen stored with the checkpoint of this name; None if there is none for these weights."""
    source = services.served.sources.get(name)
    if services.served.settings.dtype not in ("auto", "float32") or not isinstance(source, Path):
        return None
    if not os.path.isfile(source / FIRST_SCREEN):
        return None
    try:
        kept: Any = read_json(source / FIRST_SCREEN, MAX_FIRST_SCREEN_BYTES)
        if kept["pointer"]["sha256"] != file_hash(weight_files(source), source) or "attribution" not in kept:
            return None  # of other weights, or written before the page showed what heads add
        kept["pointer"]["model"] = name
        return dict(kept)
    except (CheckpointError, KeyError, TypeError):
        return None


class FirstScreenMiddleware:
    """Adds to the page's HTML what ``look/main.mjs`` draws the first screen from, and compresses it."""

    def __init__(self, app: ASGIApp, services: Services, demo: gr.Blocks, with_training: bool) -> None:
        self.app, self.services, self.demo, self.with_training = app, services, demo, with_training
        self.module = main_module("look", services.served.settings.dev)
        self.made: dict[str | None, str] = {}  # the HTML, by the model whose first screen it contains

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or path_of(scope) != "/":
            await self.app(scope, receive, send)
            return
        start: Message | None = None
        body = b""

        async def hold(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                start = message
                return
            body += message.get("body", b"")
            if start is not None and not message.get("more_body"):
                content = await asyncio.to_thread(self.complete, scope, start, body)
                await send(start)
                await send({"type": "http.response.body", "body": content})

        await self.app(scope, receive, hold)

    def complete(self, scope: Scope, start: Message, body: bytes) -> bytes:
        """The page with its first screen; any other response as it is. Changes the headers in ``start``."""
        headers = MutableHeaders(scope=start)
        if start["status"] != 200 or not headers.get("content-type", "").startswith("text/html"):
            return body
        before, end, after = body.partition(b"</head>")
        if root := scope.get("root_path", ""):  # at /heads, Gradio's ./ would lead out of the root path
            before = before.replace(b'<base href="./" />', f'<base href="{root}/" />'.encode())
        request = Request(scope)
        address = address_of(request, root)
        before, styles = with_start_replaced(before, GRADIO_LATER)
        before = with_preview(before, address, request.url.query, self.services.served)
        # The browser asks for these while it still receives what Gradio knows of the page.
        early = f'<link rel="modulepreload" href="{self.module}"><link rel="preload" as="style" href="{URL}/look.css">'
        before = before.replace(b"<script", (early + HEAD).encode() + b"<script", 1)
        # What follows a style sheet is painted only when the sheet is there.
        start_of_body, place, rest = after.partition(b"<gradio-app")
        added = FIRST.encode() + styles + self.elements(scope).encode()
        body = b"".join((before, end, start_of_body, added, place, rest))
        if "gzip" in Headers(scope=scope).get("accept-encoding", ""):
            body = gzip.compress(body, compresslevel=4, mtime=0)
            headers["content-encoding"] = "gzip"
        headers.add_vary_header("accept-encoding")
        headers["content-length"] = str(len(body))
        return body

    def elements(self, scope: Scope) -> str:
        """The elements that start the page, with the first screen of the model that it opens on if that is known."""
        first = self.services.openings.first
        name = first if first is not None and leads_to(scope, first) else None
        if name not in self.made:
            self.made[name] = self.make(name)
        return self.made[name]

    def make(self, name: str | None) -> str:
        screen = read_prepared(self.services, name) if name is not None else None
        start = {
            "controls": CONTROLS,
            "withTraining": self.with_training,
            "gradioWrites": self.services.served.settings.zero_gpu,
            "screen": screen and screen | {"models": model_list(self.services)},
        }
        # A script of data ends at "</script", whatever the data are.
        data = json.dumps(start, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
        return (
            f'<link rel="stylesheet" href="{URL}/look.css"><link rel="stylesheet" href="{theme_address(self.demo)}">'
            f'<script type="application/json" id="hs-start">{data}</script>{START.replace("MODULE", self.module)}'
        )


def leads_to(scope: Scope, name: str) -> bool:
    """Whether the query of the page's address leads to the opening of the model ``name``, on which the page opens."""
    query: Mapping[str, list[str]] = parse_qs(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
    return not any(word in query for word in TEXT) and query.get("model", [name]) == [name]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m web.page.first_screen",
        description=f"Keep the first screen of a checkpoint's opening in its folder, as {FIRST_SCREEN}.",
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="a checkpoint folder")
    for folder in parser.parse_args(arguments).folders:
        services = make_services(Settings(checkpoints=(str(folder.resolve()),), device="cpu", kernels=False))
        services.served.load()
        if services.served.failures:
            parser.exit(2, "".join(f"{parser.prog}: {problem}\n" for problem in services.served.problems()))
        (name,) = services.served.models
        text = json.dumps(asyncio.run(prepare(services, name)), ensure_ascii=False, separators=(",", ":"))
        (folder / FIRST_SCREEN).write_text(text + "\n", encoding="utf-8")
        print(f"{folder / FIRST_SCREEN}: {len(text.encode()):,} bytes")
        services.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
