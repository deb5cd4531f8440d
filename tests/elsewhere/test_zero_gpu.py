"""The app on a simulated ZeroGPU: a separate process in which only one function has the GPU."""

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from gradio_client import Client

import model
from helpers.api import error_of
from helpers.files import ROOT
from helpers.runs import FIELDS, new_ids
from helpers.serve_once import free_port, wait_until_healthy
from helpers.server import CONTEXT
from model.serving import engine
from web.serving import zero_gpu

STAND_INS = Path(__file__).parent / "stand_ins"
PROMPT = FIELDS["prompt"]


@dataclass
class Space:
    """The app in a separate process."""

    url: str
    log: Path
    pid: int

    @property
    def gpu_calls(self) -> list[list[int]]:
        """The process id and the seconds of each call of the GPU function."""
        return [list(map(int, line.split())) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def write(self, **changes: Any) -> Iterator[dict[str, Any]]:
        """The pointers of a text that the page's own Gradio event writes."""
        config = httpx.get(f"{self.url}/config").json()
        (event,) = (each for each in config["dependencies"] if any(name == "write" for _, name in each["targets"]))
        session = secrets.token_hex(8)
        body = {"data": [], "fn_index": event["id"], "session_hash": session, "event_data": FIELDS | changes}
        httpx.post(f"{self.url}/gradio_api/queue/join", json=body).raise_for_status()
        address = f"{self.url}/gradio_api/queue/data?session_hash={session}"
        with httpx.stream("GET", address, timeout=60) as answer:
            value: Any = None
            for line in answer.iter_lines():
                told = json.loads(line.removeprefix("data: ")) if line else {}
                if told.get("msg") == "process_generating" or (told.get("msg") == "process_completed" and not value):
                    (update,) = told["output"]["data"] or [None]
                    value = update if value is None or isinstance(update, dict) else patched(value, update)
                    yield value
                if told.get("msg") == "process_completed":
                    assert told["success"], told
                    return


def patched(value: Any, changes: list[list[Any]]) -> Any:
    """Gradio's message about a changed value: operation, path and content."""
    value = json.loads(json.dumps(value))
    for action, path, content in changes:
        *above, key = path
        place = value
        for step in above:
            place = place[step]
        if action == "append":
            place[key] += content
        elif action == "delete":
            del place[key]
        elif action == "add" and isinstance(place, list):
            place.insert(key, content)
        else:
            place[key] = content
    return value


@pytest.fixture(scope="module")
def space(checkpoints: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Space]:
    folder, port = tmp_path_factory.mktemp("space"), free_port()
    environ = os.environ | {
        "PYTHONPATH": str(STAND_INS),
        "SPACE_ID": "me/demo",
        "SPACES_ZERO_GPU": "true",
        "ZERO_GPU_LOG": str(folder / "calls"),
        "HEADSCOPE_CHECKPOINT": str(checkpoints / "tiny"),
        "HEADSCOPE_HOST": "127.0.0.1",
        "HEADSCOPE_CACHE": str(folder / "cache"),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "app.py", "--port", str(port)]
    log = (folder / "log").open("wb")
    with subprocess.Popen(command, cwd=ROOT, env=environ, stdout=log, stderr=log) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_healthy(url, process)
            yield Space(url, folder / "calls", process.pid)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def loaded(checkpoints: Path) -> model.LoadedModel:
    return model.load(checkpoints / "tiny", device="cpu", dtype="float32")


@pytest.mark.slow
def test_page_writes_in_a_gradio_event(space: Space, loaded: model.LoadedModel) -> None:
    before = len(space.gpu_calls)
    pointers = list(space.write(asked="x", seed=5))
    ids = loaded.parse_prompt(PROMPT)
    ids += [step.token_id for step in loaded.generate(PROMPT, 12, temperature=0.8, seed=5)]
    assert new_ids(pointers) == ids and {pointer["asked"] for pointer in pointers} == {"x"}
    last = pointers[-1]
    assert (last["state"], last["why"], last["tokens"], last["rows"]) == ("done", "", len(ids), len(ids))
    (call,) = space.gpu_calls[before:]
    assert call == [space.pid, 20]  # measured here; the GPU function runs in another process
    # The rows are in this process, and correct.
    sent = httpx.get(f"{space.url}/look/{last['run']}/queries/{len(ids) - 1}").content
    row = np.frombuffer(sent, np.float32).reshape(-1, len(ids))
    assert row[0] == pytest.approx(loaded.trace(ids).attention[0, 0, -1].numpy(), abs=1e-5)


@pytest.mark.slow
def test_head_masks_and_context_shifts(space: Space, loaded: model.LoadedModel) -> None:
    mask = [[1.0, 1, 1, 1], [0, 1, 1, 2], [1, 1, 1, 1]]
    steps = loaded.generate(PROMPT, 12, temperature=0.8, seed=1, head_mask=mask)
    assert new_ids(list(space.write(head_mask=mask)))[len(PROMPT) :] == [step.token_id for step in steps]
    pointers = list(space.write(context_shift=True, max_new_tokens=CONTEXT + 20))
    assert pointers[-1]["written"] == CONTEXT + 20 and len({pointer["run"] for pointer in pointers}) > 1


@pytest.mark.slow
def test_a_refusal_reaches_the_page(space: Space) -> None:
    (pointer,) = space.write(asked="y", temperature=-1)
    assert pointer["asked"] == "y" and "temperature must be" in pointer["refused"]


@pytest.mark.slow
def test_exhausted_quota_is_reported(space: Space) -> None:
    block = Path(f"{space.log}.quota")
    block.touch()
    last = list(space.write())[-1]
    block.unlink()
    assert last["state"] == "failed" and "You have exceeded your GPU quota." in last["why"]
    assert list(space.write())[-1]["state"] == "done"


@pytest.mark.slow
def test_api_computes_without_the_gpu(space: Space, loaded: model.LoadedModel) -> None:
    before = len(space.gpu_calls)
    body = {"prompt": "ab", "max_tokens": 8, "seed": 3}
    answer = httpx.post(f"{space.url}/v1/completions", json=body, timeout=60).json()
    assert answer["choices"][0]["text"] == "".join(step.text for step in loaded.generate("ab", 8, seed=3))
    assert httpx.post(f"{space.url}/v1/attention", json={"prompt": "ab"}, timeout=60).status_code == 200
    assert error_of(httpx.post(f"{space.url}/v1/completions", json={"prompt": ""}))["param"] == "prompt"
    assert len(space.gpu_calls) == before


@pytest.mark.slow
def test_gradio_endpoints_may_use_the_gpu(space: Space, loaded: model.LoadedModel) -> None:
    before = len(space.gpu_calls)
    text = Client(space.url, verbose=False).predict("ab", max_new_tokens=8, seed=3, api_name="/generate")
    assert text == "".join(step.text for step in loaded.generate("ab", 8, seed=3))
    assert len(space.gpu_calls) == before + 1


def test_long_prompt_is_read_in_several_steps(loaded: model.LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MAX_PROMPT_TOKENS", 3)
    monkeypatch.setitem(zero_gpu.MODELS, "long", loaded)
    request = loaded.request("a long prompt", 5, seed=1)
    events = [event for batch in zero_gpu.write("long", request, None) for event in batch]
    expected = [step.token_id for step in loaded.generate("a long prompt", 5, seed=1)]
    assert [event.token_id for event in events if isinstance(event, model.Step)] == expected
    del zero_gpu.ON_GPU["long"]


@pytest.mark.slow
def test_training_is_off(space: Space) -> None:
    assert httpx.get(f"{space.url}/look/landing").json()["training"] is False
    names = httpx.get(f"{space.url}/gradio_api/info").json()["named_endpoints"]
    assert "/generate" in names and "/train" not in names
