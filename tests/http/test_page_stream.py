"""A text of the page as a stream of pointers: completeness, cancellation, and turns between clients."""

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from helpers.gate import wait_for_end
from helpers.models import scripted_model, tiny_model
from helpers.oracles.pipelines import PIPELINES
from helpers.runs import FIELDS, Reader, new_ids, streamed, write_text
from helpers.server import CONTEXT, Server
from model.serving.engine import Engine
from model.tokenizer import from_spec
from web.page import pointers as pointers_module
from web.page import writer
from web.runs.store import RunWriter

PROMPT = FIELDS["prompt"]


def expected_ids(server: Server, prompt: Any, n_new: int, **settings: Any) -> list[int]:
    loaded = server.served.models["tiny"]
    steps = loaded.generate(prompt, n_new, **({"temperature": 0.8, "seed": 1} | settings))
    return loaded.parse_prompt(prompt) + [step.token_id for step in steps]


@pytest.mark.parametrize(
    "settings", [{}, {"seed": 7}, {"temperature": 0.0}, {"temperature": 1.4, "top_k": 9, "top_p": 0.9, "min_p": 0.02}]
)
def test_pointers_join_to_the_generated_text(server: Server, settings: dict[str, Any]) -> None:
    pointers = write_text(server, **settings)
    expected = expected_ids(server, PROMPT, 12, **({"top_k": None} | settings))
    assert new_ids(pointers) == expected
    texts = [token["text"] for pointer in pointers for token in pointer["new"]]
    assert "".join(texts) == server.served.models["tiny"].tokenizer.decode(expected)
    assert [pointer["state"] for pointer in pointers][-1] == "done"
    assert len({pointer["run"] for pointer in pointers}) == 1
    assert pointers[-1]["tokens"] == pointers[-1]["rows"] == len(expected) and pointers[-1]["written"] == 12
    assert pointers[-1]["settings"]["seed"] == settings.get("seed", 1)
    # The last pointer agrees with the run.
    run = server.services.runs.get(pointers[-1]["run"])
    assert run is not None and run.ids == expected


def test_a_prompt_may_be_token_ids(launch: Callable[..., Server], tmp_path: Path) -> None:
    loaded = tiny_model(0, from_spec(PIPELINES["llama 2"]()), context_length=64)
    loaded.save(tmp_path / "llama")
    server = launch(tmp_path / "llama")
    ids = loaded.parse_prompt("the \u0416")
    for some in (ids, ids[:-1], [*ids, ids[-1]]):  # also such as no text is encoded to
        pointer = (pointers := write_text(server, model="llama", prompt=some))[-1]
        assert new_ids(pointers)[: len(some)] == some and pointer["n_prompt"] == len(some)
        assert pointer["settings"]["prompt"] == loaded.tokenizer.decode(some) and pointer["before"] == "<s> "
    for prompt, said in (([], "empty"), ([10**6], "1000000"), (["a"], "a"), ([True], "true"), ([1] * 65, "64")):
        answer = httpx.post(f"{server.url}/look/write", json=FIELDS | {"model": "llama", "prompt": prompt})
        assert answer.status_code == 400 and said in answer.text, answer.text


def test_tokens_come_with_their_probabilities(server: Server) -> None:
    tokens = [token for pointer in write_text(server) for token in pointer["new"]]
    loaded = server.served.models["tiny"]
    ids = [token["id"] for token in tokens]
    logprobs = loaded.trace(ids).logits.log_softmax(-1)
    for at, token in enumerate(tokens[len(PROMPT) :], len(PROMPT)):
        assert token["logprob"] == pytest.approx(float(logprobs[at - 1, ids[at]]), abs=1e-4)


def test_unpinned_seed_changes_and_is_reported(server: Server) -> None:
    first, second = (write_text(server, seed=None)[-1]["settings"]["seed"] for _ in range(2))
    assert first != second
    again = [new_ids(write_text(server, seed=first)) for _ in range(2)]
    assert again[0] == again[1] == expected_ids(server, PROMPT, 12, seed=first)


def test_a_token_is_sent_before_the_next_one_is_written(server: Server, slow: Any) -> None:
    with streamed(server, model="slow", max_new_tokens=30) as pointers:
        assert next(pointers)["state"] == "waiting"
        for n in range(1, 11):
            slow.gate.release()
            pointer = next(pointers)
            while pointer["tokens"] < len(PROMPT) + n:
                pointer = next(pointers)
            assert len(pointer["new"]) == 1


@pytest.mark.parametrize(
    ("n_texts", "seconds_ahead", "expected"), [(2, 9.0, 0.05), (100, -1.0, 0.05), (100, 0.3, 0.15), (100, 9.0, 0.25)]
)
def test_many_texts_come_in_larger_pieces_once_there_is_enough_to_read(
    server: Server, n_texts: int, seconds_ahead: float, expected: float
) -> None:
    pages, text = writer.PageWriter(server.services), SimpleNamespace(seconds_ahead=seconds_ahead)
    generation: Any = SimpleNamespace(sequences=[text])
    writers: Any = [object() for _ in range(n_texts)]
    pages.generations = dict.fromkeys(writers, generation)
    assert pages.pace(generation) == expected


def test_stopped_text_has_its_last_row(server: Server, slow: Any) -> None:
    with streamed(server, model="slow", max_new_tokens=30) as pointers:
        sent = [next(pointers)]
        slow.gate.release(3)
        while sent[-1]["tokens"] < len(PROMPT) + 3:
            sent.append(next(pointers))
        assert httpx.post(f"{server.url}/look/{sent[0]['run']}/stop", json={}).status_code == 204
        slow.gate.release()
        sent += list(pointers)
    assert sent[-1]["state"] == "stopped" and sent[-1]["why"] == ""
    assert sent[-1]["tokens"] == sent[-1]["rows"] == len(PROMPT) + 3  # the last step only read
    assert new_ids(sent) == expected_ids(server, PROMPT, 3)
    server.wait_until_idle()


def test_stopping_a_finished_text_does_nothing(server: Server) -> None:
    done = write_text(server)[-1]
    for run in (done["run"], "nobody"):
        assert httpx.post(f"{server.url}/look/{run}/stop", json={}).status_code == 204


def test_closing_the_stream_ends_the_text(server: Server, slow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    end, ended = RunWriter.end, threading.Event()

    def end_and_tell(writer: RunWriter) -> None:
        end(writer)
        ended.set()

    monkeypatch.setattr(RunWriter, "end", end_and_tell)
    with streamed(server, model="slow", max_new_tokens=30) as pointers:
        next(pointers)
        slow.gate.release()
        while not (pointer := next(pointers))["rows"]:
            pass
        (generation,) = server.running
    wait_for_end(generation)
    assert ended.wait(10)
    run = server.services.runs.get(pointer["run"])
    assert run is not None and not run.writing


def test_finish_reason_is_reported(server: Server) -> None:
    full = write_text(server, prompt="a" * (CONTEXT - 2), max_new_tokens=50)[-1]
    assert (full["state"], full["tokens"]) == ("done", CONTEXT + 1) and f"{CONTEXT} tokens is full" in full["why"]
    assert write_text(server)[-1]["why"] == ""


def test_branches_continue_from_another_token(server: Server) -> None:
    loaded = server.served.models["tiny"]
    first = write_text(server)[-1]
    ids = expected_ids(server, PROMPT, 12)
    other = (ids[12] + 1) % loaded.config.vocab_size
    asked = {"of": first["run"], "model": "tiny", "sha256": loaded.sha256, "n_prompt": len(PROMPT)}
    pointers = write_text(server, branch=asked | {"ids": [*ids[:12], other], "instead": ids[12]})
    assert new_ids(pointers) == expected_ids(server, [*ids[:12], other], 12)
    texts = [token.text for token in loaded.tokens([other, ids[12]])]
    assert all(
        pointer["branch"] == {"of": first["run"], "at": 12, "token": texts[0], "instead": texts[1]}
        for pointer in pointers
    )
    assert {pointer["n_prompt"] for pointer in pointers} == {len(PROMPT)}
    assert pointers[-1]["written"] == 12


def test_concurrent_texts_are_independent(server: Server) -> None:
    readers = [Reader(server, seed=seed, max_new_tokens=30) for seed in (3, 4, 5)]
    for seed, reader in zip((3, 4, 5), readers, strict=True):
        assert new_ids(reader.finish()) == expected_ids(server, PROMPT, 30, seed=seed)


def test_context_shift_continues_in_a_new_run(server: Server) -> None:
    pointers = write_text(server, max_new_tokens=100, context_shift=True)
    runs = list(dict.fromkeys(pointer["run"] for pointer in pointers))
    assert len(runs) > 1
    last = [pointer for pointer in pointers if pointer["run"] == runs[-1]]
    run = server.services.runs.get(runs[-1])
    assert run is not None and new_ids(last) == run.ids
    assert last[-1]["written"] == 100 and last[-1]["earlier"].startswith(PROMPT)


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"prompt": ""}, "prompt", "empty"),
        ({"prompt": "é"}, "prompt", "never seen"),
        ({"prompt": 3}, "prompt", "must be text"),
        ({"prompt": "a" * (CONTEXT + 1)}, "prompt", f"at most {CONTEXT}"),
        ({"model": "nobody"}, "model", "There is no model 'nobody'"),
        ({"model": "broken"}, "model", "broken cannot be served"),
        ({"temperature": -1}, "temperature", "temperature must be"),
        ({"max_new_tokens": 0}, "max_new_tokens", "max_new_tokens must be"),
        ({"top_p": 0}, "top_p", "top_p must be"),
        ({"min_p": 2}, "min_p", "min_p must be"),
        ({"top_k": -3}, "top_k", "top_k must be"),
        ({"seed": "x"}, "seed", "seed must be"),
        ({"context_shift": "yes"}, "context_shift", "true or false"),
        ({"branch": []}, "branch", "A branch must be an object"),
        ({"branch": {"sha256": "0" * 64}}, "sha256", "no longer served"),
    ],
)
def test_a_refusal_names_its_field(server: Server, changes: dict[str, Any], field: str, said: str) -> None:
    answer = httpx.post(f"{server.url}/look/write", json=FIELDS | changes)
    assert answer.status_code == 400
    assert answer.json()["field"] == field and said in answer.json()["detail"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"text"'])
def test_body_must_be_an_object(server: Server, body: bytes) -> None:
    answer = httpx.post(f"{server.url}/look/write", content=body)
    assert answer.status_code == 400 and answer.json()["field"] == "body"


class OneAtATime(Engine):
    """A server that writes one text at a time, and starts only when the test has requested all of them."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, max_batch=1, **settings)
        self.begin = threading.Event()
        self.order: list[Any] = []

    def forward(self, planned: Any) -> None:
        assert self.begin.wait(20)
        self.order += [sequence.client for sequence in planned if sequence.client not in self.order[-1:]]
        super().forward(planned)


def test_many_texts_of_one_client_do_not_delay_another(
    launch: Callable[..., Server], checkpoints: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten pages at one address ask first; a page at another address is still served second."""
    asked: list[str] = []
    monkeypatch.setattr("web.page.routes.client_of", lambda request: request.headers["x-test-client"])
    server = launch(checkpoints / "tiny")
    loaded = server.served.models["tiny"]
    engine = OneAtATime(loaded)
    server.services.engines.add(loaded, engine)

    def ask(client: str) -> None:
        headers = {"x-test-client": client}
        fields = FIELDS | {"max_new_tokens": 3}
        with httpx.stream("POST", f"{server.url}/look/write", json=fields, headers=headers, timeout=60) as answer:
            asked.append(client)
            answer.read()

    threads = []
    for count, client in enumerate(["many"] * 10 + ["one"], 1):
        thread = threading.Thread(target=ask, args=(client,))
        thread.start()
        threads.append(thread)
        server.running.news.wait_until(lambda count=count: len(server.running) == count)
    engine.begin.set()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert engine.order[:3] == ["many", "one", "many"]


def test_last_event_names_the_finish_reason(launch: Callable[..., Server], checkpoints: Path) -> None:
    server = launch(checkpoints / "tiny")
    tokenizer = server.served.models["tiny"].tokenizer
    ids = tokenizer.encode("abcd~" + "x" * 20)
    loaded = scripted_model(ids[1:], tokenizer, eos_token_id=ids[4])
    loaded.name = "ending"
    server.served.models["ending"] = loaded
    last = write_text(server, model="ending", prompt="a", temperature=0.0, max_new_tokens=15)[-1]
    assert (last["state"], last["written"], last["why"]) == ("done", 3, "The model ended its text here.")


def test_new_tokens_end_with_the_text(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the text grows between the two: the page puts the new tokens before that place."""
    describe = pointers_module.pointer

    def late(*arguments: Any) -> dict[str, object]:
        found = describe(*arguments)
        return found | {"tokens": found["tokens"] + 1}  # type: ignore[operator]

    monkeypatch.setattr(pointers_module, "pointer", late)
    count = 0
    for pointer in write_text(server):
        count += len(pointer["new"])
        assert pointer["tokens"] == count
    assert count > 12
