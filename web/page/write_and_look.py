"""The Write & Look tab: the prompt and its controls above the one linked workspace."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import gradio as gr

from model import GenerationRequest, InputError
from model.serving.engine import Busy, Closed

from ..runs.run import Run
from ..runs.run_writer import RunWriter
from ..services import Services
from ..serving.engines import client_of
from ..serving.generation import Generation
from ..serving.inputs import SLIDERS, read_request, settings_of
from ..settings import OPENING_PROMPTS, UPDATE_SECONDS
from .branch import read_branch
from .controls import FIELDS, as_fields
from .pointer import opening_pointer, pointer
from .view import workspace_view

log = logging.getLogger(__name__)

BARS = ("temperature", "top_k", "top_p", "min_p")  # what moves the bars of the next token

# They follow the sliders in the browser alone. The values stay on the window for modules that load after the event.
TELL_SAMPLING = f"""({", ".join(BARS)}) => {{
  window.headscopeSampling = {{ {", ".join(BARS)} }};
  window.dispatchEvent(new CustomEvent("headscope-sampling"));
}}"""

# Another model's opening brings its prompt, unless one was typed; in the browser, where nobody types meanwhile.
FOLLOW_OPENING = f"""(view, prompt) =>
  {json.dumps(OPENING_PROMPTS)}.includes(prompt) && view?.state === "opening" ? view.settings.prompt : prompt"""

Update = tuple[object, object, object]  # of the view, and of the buttons that write and stop


def workspace_tab(services: Services, model: gr.Dropdown) -> list[object]:
    """Build the tab's content inside the Blocks; returns the controls, in the order of ``FIELDS``, and the view."""
    with gr.Row(elem_id="hs-prompt-row", equal_height=True):
        prompt = gr.Textbox(
            label="Prompt", placeholder="Some words for the model to continue", lines=1, max_lines=5, scale=8,
            max_length=services.limits.max_prompt_characters, min_width=280, elem_id="hs-prompt",
        )  # fmt: skip
        write = gr.Button("Write", variant="primary", scale=0, min_width=110, elem_id="hs-write")
        stop = gr.Button("Stop", scale=0, min_width=90, interactive=False, elem_id="hs-stop")
    controls: dict[str, object] = {"prompt": prompt, "model": model}

    def slider(name: str, **options: Any) -> None:
        label, least, most, step, start = SLIDERS[name]
        controls[name] = gr.Slider(least, most, start, step=step, label=label, **options)

    with gr.Row(elem_id="hs-sampling"):
        for name in ("max_new_tokens", "temperature", "top_k", "top_p"):
            slider(name, scale=1, min_width=140, buttons=[])
        with gr.Column(scale=1, min_width=150), gr.Accordion("more", open=False):
            slider("min_p", min_width=120)
            controls["seed"] = gr.Number(1, precision=0, label="seed (empty = a new one each time)", min_width=120)
            controls["context_shift"] = gr.Checkbox(
                False, label="Keep writing past the context window", info="re-reads its newer half", min_width=120
            )
    view = workspace_view(value=None, elem_id="hs-view")

    events = Events(services)
    inputs = [controls[name] for name in FIELDS]
    outputs = [view, write, stop]
    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    gr.on([write.click, prompt.submit], events.write, inputs, outputs, validator=events.check, **quiet)
    # Several at a time: a branch may be left for another one while it is written.
    view.branch(events.branch, inputs, outputs, trigger_mode="multiple", **quiet)
    view.halt(events.halt, None, None, queue=False, **quiet)
    stop.click(events.stop, None, None, queue=False, **quiet)
    picked = model.input(events.pick, model, view, **quiet)
    picked.then(None, [view, prompt], prompt, js=FOLLOW_OPENING, queue=False, **quiet)
    # Without triggers: when the page loads, and whenever one of them changes.
    gr.on(None, None, [controls[name] for name in BARS], None, js=TELL_SAMPLING, queue=False, **quiet)
    return [*inputs, view]


class Events:
    """What happens when a visitor writes, stops, or picks another model."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.generations: dict[str, dict[str, Generation]] = {}  # by browser tab, and by run

    def check(self, *values: object) -> list[dict[str, object]]:
        """A message beside the field that is wrong, before anything else happens."""
        wrong, message = "", ""
        try:
            read_request(self.services.served, as_fields(values))
        except InputError as error:
            # The model's own box has no room for a message.
            wrong, message = "prompt" if error.field == "model" else error.field, str(error)
        return [gr.validate(field != wrong, message) for field in FIELDS]

    async def write(self, request: gr.Request, *values: object) -> AsyncGenerator[Update]:
        """Write a text and point the view to it as it grows."""
        fields = as_fields(values)
        try:
            loaded, asked = read_request(self.services.served, fields)
        except InputError as error:  # the models changed since the check
            raise gr.Error(str(error), print_exception=False) from None
        await self.stop(request)  # what a branch still writes
        run = self.services.runs.new(loaded, asked.prompt, asked.max_new_tokens)
        async with aclosing(self.follow(request, run, asked, str(fields["prompt"]), {})) as updates:
            async for update in updates:
                yield update

    async def branch(self, request: gr.Request, event: gr.EventData, *values: object) -> AsyncGenerator[Update]:
        """Write another continuation beside the text that the event names, which may still be written itself."""
        try:
            branch = read_branch(self.services.served, event._data, as_fields(values))
        except InputError as error:
            raise gr.Error(str(error), print_exception=False) from None
        for run_id, generation in self.generations.get(str(request.session_hash), {}).items():
            if run_id != branch.of:  # the page shows two texts, so any other was left
                generation.stop()
        asked = branch.request
        run = self.services.runs.new(branch.loaded, asked.prompt, asked.max_new_tokens, branch.n_prompt)
        async with aclosing(self.follow(request, run, asked, branch.prompt, {"branch": branch.pointer})) as updates:
            async for update in updates:
                yield update

    async def follow(
        self, request: gr.Request, run: Run, asked: GenerationRequest, prompt: str, more: dict[str, object]
    ) -> AsyncGenerator[Update]:
        """Write the run and report how it goes, with ``more`` in every pointer."""
        session, settings = str(request.session_hash), settings_of(asked, prompt)
        writer = RunWriter(self.services.runs, run)

        def point(state: str) -> dict[str, object]:
            n_written = writer.run.n_earlier + len(writer.run.ids) - len(asked.prompt)
            return pointer(writer.run, state, settings) | {"written": n_written} | more

        # One token more than asked for: to write it, the last one of the text must be read, and so gets its row.
        recorded = replace(asked, max_new_tokens=asked.max_new_tokens + 1, record=True, prompt_logprobs=True)
        generation = self.services.engines.generate(
            run.loaded, recorded, client=client_of(request), route="page", pace=UPDATE_SECONDS
        )
        state, why = "done", ""
        of_session = self.generations.setdefault(session, {})
        of_session[run.id] = generation
        try:
            async with generation:
                yield point("waiting"), gr.update(interactive=False), gr.update(interactive=True)
                async for events in generation:
                    await asyncio.to_thread(writer.take, events, generation.stopped.is_set())
                    of_session[writer.run.id] = generation
                    yield point("writing"), gr.skip(), gr.skip()
                state = "stopped" if generation.stopped.is_set() else "done"
                if generation.outcome == "deadline":
                    why = "The time limit of this server was reached."
        except Busy:
            state, why = "failed", "Too many texts are being written at the moment. Try again soon."
        except Closed:
            state, why = "failed", "The server is shutting down."
        except Exception as error:  # whatever the model raised, the page goes on
            log.exception("writing failed")
            state, why = "failed", f"Writing failed: {error}"
        finally:
            # It computes, and this may be the event loop.
            ending = asyncio.get_running_loop().run_in_executor(None, writer.end)
            for run_id in [run_id for run_id, other in of_session.items() if other is generation]:
                del of_session[run_id]
            if not of_session:
                self.generations.pop(session, None)
        await ending
        busy = bool(self.generations.get(session))
        why = why or (why_ended(asked, writer.run) if state == "done" else "")
        yield point(state) | {"why": why}, gr.update(interactive=not busy), gr.update(interactive=busy)

    async def stop(self, request: gr.Request) -> None:
        """End all that this browser tab is writing, at its next token."""
        for generation in self.generations.get(str(request.session_hash), {}).values():
            generation.stop()

    async def halt(self, request: gr.Request, event: gr.EventData) -> None:
        """End one text of this browser tab, which it no longer shows."""
        run_id = event._data.get("run") if isinstance(event._data, dict) else None
        if generation := self.generations.get(str(request.session_hash), {}).get(str(run_id)):
            generation.stop()

    async def pick(self, name: str, request: gr.Request) -> dict[str, object]:
        """Show another model's opening, and stop writing on texts of the one before."""
        await self.stop(request)
        return await opening_pointer(self.services, name)


def why_ended(asked: GenerationRequest, run: Run) -> str:
    """What a visitor should know about the end of a text; nothing where it is as long as asked for."""
    if run.n_earlier + len(run.ids) >= len(asked.prompt) + asked.max_new_tokens:
        return ""
    most = run.loaded.config.context_length
    if len(run.ids) > most:
        return f"The context of {most} tokens is full; the last token was not read any more."
    return "The model ended its text here."
