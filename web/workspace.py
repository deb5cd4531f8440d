"""The Write & Look tab: the prompt and its controls above the one linked workspace."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import gradio as gr

from model.engine import Busy, Closed
from model.ticket import Ticket

from .attention_view import attention_view
from .branches import read_branch
from .engines import Engines, client_of
from .job import Job
from .openings import Openings
from .running_text import RunningText
from .runs import Run, Runs
from .settings import OPENING_PROMPTS, UPDATE_SECONDS
from .shelf import Shelf
from .traces import Traces
from .validate import BadInput, Request, read_request

log = logging.getLogger(__name__)

# The order of the event's inputs, which is that of read_request.
FIELDS = ("prompt", "model", "max_new_tokens", "temperature", "top_k", "top_p", "min_p", "seed", "context_shift")

# The bars of the next token follow the sliders in the browser alone. The values stay on the window for whoever comes
# later than the event: the workspace's modules load on their own.
TELL_SAMPLING = """(temperature, top_k, top_p, min_p) => {
  window.headscopeSampling = { temperature, top_k, top_p, min_p };
  window.dispatchEvent(new CustomEvent("headscope-sampling"));
}"""

# Another model's opening brings its prompt, unless one was typed; in the browser, where nobody types meanwhile.
FOLLOW_OPENING = f"""(view, prompt) =>
  {json.dumps(OPENING_PROMPTS)}.includes(prompt) && view?.state === "opening" ? view.settings.prompt : prompt"""

Update = tuple[Any, Any, Any]  # of the view, and of the buttons that write and stop


@dataclass(frozen=True)
class Parts:
    """What the tab's events are wired to."""

    shelf: Shelf
    runs: Runs
    openings: Openings
    engines: Engines
    traces: Traces


def workspace_tab(parts: Parts, model: gr.Dropdown) -> tuple[list[Any], gr.HTML]:
    """Build the tab's content inside the Blocks; returns the controls, in the order of ``FIELDS``, and the view."""
    with gr.Row(elem_id="hs-prompt-row", equal_height=True):
        prompt = gr.Textbox(
            label="Prompt", placeholder="Some words for the model to go on from", lines=1, max_lines=5, scale=8,
            max_length=parts.shelf.settings.limits.max_prompt_characters, min_width=280, elem_id="hs-prompt",
        )  # fmt: skip
        write = gr.Button("Write", variant="primary", scale=0, min_width=110, elem_id="hs-write")
        stop = gr.Button("Stop", scale=0, min_width=90, interactive=False, elem_id="hs-stop")
    with gr.Row(elem_id="hs-sampling"):
        slider: dict[str, Any] = {"scale": 1, "min_width": 140, "buttons": []}
        length = gr.Slider(1, 1024, 200, step=1, label="length", **slider)
        temperature = gr.Slider(0, 2, 0.8, step=0.05, label="temperature", **slider)
        top_k = gr.Slider(0, 100, 0, step=1, label="top-k (0 = all)", **slider)
        top_p = gr.Slider(0.05, 1, 1, step=0.05, label="top-p", **slider)
        with gr.Column(scale=1, min_width=150), gr.Accordion("more", open=False):
            min_p = gr.Slider(0, 1, 0, step=0.01, label="min-p", min_width=120)
            seed = gr.Number(1, precision=0, label="seed (empty = new each time)", min_width=120)
            shift = gr.Checkbox(
                False, label="go on when the context is full", info="from its newer half, read anew", min_width=120
            )
    view = attention_view(value=None, elem_id="hs-view")

    events = Events(parts)
    inputs = [prompt, model, length, temperature, top_k, top_p, min_p, seed, shift]
    outputs = [view, write, stop]
    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    gr.on([write.click, prompt.submit], events.write, inputs, outputs, validator=events.check, **quiet)
    # Several at a time: a branch may be left for another one while it is written.
    view.branch(events.branch, inputs[2:], outputs, trigger_mode="multiple", **quiet)
    view.halt(events.halt, None, None, queue=False, **quiet)
    stop.click(events.stop, None, None, queue=False, **quiet)
    picked = model.input(events.pick, model, view, **quiet)
    picked.then(None, [view, prompt], prompt, js=FOLLOW_OPENING, queue=False, **quiet)
    # Without triggers: when the page loads, and whenever one of them changes.
    gr.on(None, None, [temperature, top_k, top_p, min_p], None, js=TELL_SAMPLING, queue=False, **quiet)
    return inputs, view


class Events:
    """What happens when a visitor writes, stops, or takes another model."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.jobs: dict[str, dict[str, Job]] = {}  # by browser tab, and by run

    def check(self, *values: Any) -> list[dict[str, Any]]:
        """A message beside the field that is wrong, before anything else happens."""
        problem = None
        try:
            read_request(self.parts.shelf, *values)
        except BadInput as error:
            problem = error
        # The model's own box has no room for a message.
        wrong = problem and ("prompt" if problem.field == "model" else problem.field)
        return [gr.validate(field != wrong, str(problem)) for field in FIELDS]

    async def write(self, request: gr.Request, *values: Any) -> AsyncGenerator[Update]:
        """Write a text and point the view to it as it grows."""
        try:
            asked = read_request(self.parts.shelf, *values)
        except BadInput as error:  # the models changed since the check
            raise gr.Error(str(error), print_exception=False) from None
        await self.stop(request)  # what a branch still writes
        run = self.parts.runs.new(asked.gpt, asked.ids, asked.max_new_tokens)
        async with aclosing(self.follow(request, asked, run, {})) as updates:
            async for update in updates:
                yield update

    async def branch(self, request: gr.Request, event: gr.EventData, *values: Any) -> AsyncGenerator[Update]:
        """Write another continuation beside the text that the event names, which may still be written itself."""
        try:
            branch = read_branch(self.parts.shelf, event._data, *values)
        except BadInput as error:
            raise gr.Error(str(error), print_exception=False) from None
        asked, session = branch.request, str(request.session_hash)
        for run_id, job in self.jobs.get(session, {}).items():
            if run_id != branch.of:  # the page shows two texts, so any other was left
                job.stop()
        run = self.parts.runs.new(asked.gpt, asked.ids, asked.max_new_tokens, branch.n_prompt)
        async with aclosing(self.follow(request, asked, run, {"branch": branch.pointer})) as updates:
            async for update in updates:
                yield update

    async def follow(
        self, request: gr.Request, asked: Request, run: Run, more: dict[str, Any]
    ) -> AsyncGenerator[Update]:
        """Write the run and report how it goes, with ``more`` in every pointer."""

        session, client = str(request.session_hash), client_of(request)

        text = RunningText(self.parts.runs, run)

        def point(state: str) -> dict[str, Any]:
            n_written = text.run.n_earlier + len(text.run.ids) - len(asked.ids)
            return pointer(asked.name, text.run, state, asked.settings) | {"written": n_written} | more

        engines, job = self.parts.engines, Job()
        # One token more than asked for: to write it, the last one of the text must be read, and so gets its row.
        ticket = Ticket(asked.draft(extra=1), job.sink(), client, record=True, read_prompt=True,
                        deadline=engines.deadline())  # fmt: skip
        state, why = "done", ""
        self.jobs.setdefault(session, {})[run.id] = job
        try:
            engines.start(job, asked.gpt, ticket)
            yield point("waiting"), gr.update(interactive=False), gr.update(interactive=True)
            async for events in job.follow(UPDATE_SECONDS):
                await asyncio.to_thread(text.take, events, job)
                self.jobs[session][text.run.id] = job
                yield point("writing"), gr.skip(), gr.skip()
            state = "stopped" if job.cancelled.is_set() else "done"
            if job.outcome == "deadline":
                why = "Its time on this server was up."
        except Busy:
            state, why = "failed", "Too many texts are being written at the moment. Try again soon."
        except Closed:
            state, why = "failed", "The server is closing."
        except Exception as error:  # whatever the model raised, the page goes on
            log.exception("writing failed")
            state, why = "failed", f"Writing failed: {error}"
        finally:
            engines.leave(job, "page")
            # It computes, and this may be the loop.
            ending = asyncio.get_running_loop().run_in_executor(None, text.end)
            self.jobs[session] = {run_id: other for run_id, other in self.jobs[session].items() if other is not job}
            if not self.jobs[session]:
                del self.jobs[session]
        await ending
        busy = session in self.jobs
        why = why or (why_ended(asked, text.run) if state == "done" else "")
        yield point(state) | {"why": why}, gr.update(interactive=not busy), gr.update(interactive=busy)

    async def stop(self, request: gr.Request) -> None:
        """End all that this browser tab is writing, at its next token."""
        for job in self.jobs.get(str(request.session_hash), {}).values():
            job.stop()

    async def halt(self, request: gr.Request, event: gr.EventData) -> None:
        """End one text of this browser tab, which it no longer shows."""
        run_id = event._data.get("run") if isinstance(event._data, dict) else None
        if job := self.jobs.get(str(request.session_hash), {}).get(str(run_id)):
            job.stop()

    async def pick(self, name: str, request: gr.Request) -> dict[str, Any]:
        """Show another model's opening, and write on no text of the one before."""
        await self.stop(request)
        return await opening_pointer(self.parts, name)


async def opening_pointer(parts: Parts, name: str | None) -> dict[str, Any]:
    """The view's value for a model that this visitor has not asked yet."""
    if name not in parts.shelf.models:
        return {"state": "none", "notices": parts.shelf.problems()}
    opening, run = await asyncio.to_thread(parts.openings.get, name)
    return pointer(name, run, "opening", opening.settings) | {"head": opening.head}


def pointer(name: str, run: Run, state: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The view's value: small, and all that the browser needs to fetch the rest."""
    config = run.gpt.config
    return {
        "run": run.id,
        "state": state,
        "tokens": len(run.ids),
        "rows": run.recording.n_rows,
        "rate": round(run.tokens_per_second, 1),
        "n_prompt": run.n_prompt,
        "earlier": run.earlier,
        "model": name,
        "sha256": run.gpt.sha256,
        "n_layer": config.n_layer,
        "n_head": config.n_head,
        "context_length": config.context_length,
        "settings": settings,
    }


def why_ended(asked: Request, run: Run) -> str:
    """What a visitor should know about the end of a text; nothing where it is as long as asked for."""
    if run.n_earlier + len(run.ids) >= len(asked.ids) + asked.max_new_tokens:
        return ""
    if len(run.ids) > asked.gpt.config.context_length:
        return f"The context of {asked.gpt.config.context_length} tokens is full; the last token was not read any more."
    return "The model ended its text here."
