"""A remote engine: the requests it is sent, the handling of its text, and what happens when it is lost."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

import app
from helpers.api import error_of, post_body
from helpers.models import tiny_model
from helpers.oracles.pipelines import llama2
from helpers.oracles.scripted_engine import ScriptedEngine
from helpers.runs import FIELDS, new_ids, streamed, write_text
from helpers.serve_once import free_port
from helpers.server import Server
from model.tokenizer import from_spec
from web import settings
from web.serving import engine_client
from web.serving.engine_addresses import EngineAddress, parse_addresses
from web.settings import Settings

BODY = {"model": "tiny", "prompt": "ab", "max_tokens": 5, "seed": 4}


def test_engine_receives_exactly_these_fields(engine: ScriptedEngine, remote_server: Server) -> None:
    body = BODY | {"temperature": 0.7, "top_p": 0.9, "stop": ["x", "y"], "logprobs": 3, "user": "me", "top_k": 0}
    assert post_body(remote_server, body).status_code == 200
    write_text(remote_server)
    sent = {"model": "tiny", "prompt": "ab", "max_tokens": 5, "temperature": 0.7, "top_p": 0.9, "seed": 4}
    assert engine.bodies[0] == sent | {"stop": ["x", "y"], "stream": True}
    page = {name: FIELDS[name] for name in ("prompt", "temperature", "top_p", "seed")}
    assert engine.bodies[1] == page | {"model": "tiny", "max_tokens": FIELDS["max_new_tokens"], "stream": True}
    assert engine.keys == [None, None]


@pytest.mark.parametrize(
    ("listed", "called"),
    [
        ({"data": [{"id": "/models/tiny"}]}, "/models/tiny"),
        ({"data": [{"id": "other"}, {"id": "tiny"}]}, "tiny"),
        ({"data": []}, "tiny"),
        ({"error": "no list"}, "tiny"),
        (None, "tiny"),
    ],
)
def test_engine_model_name_is_found_in_its_list(
    engine: ScriptedEngine, launch: Callable[..., Server], checkpoints: Path, listed: Any, called: str
) -> None:
    engine.models = listed
    post_body(launch(checkpoints / "tiny", engine_urls=(engine.url,)), BODY)
    assert engine.bodies[0]["model"] == called


def test_configured_engine_model_and_key_are_sent(
    engine: ScriptedEngine, launch: Callable[..., Server], checkpoints: Path
) -> None:
    server = launch(
        checkpoints / "tiny", engine_urls=(engine.url,), engine_models=("/models/x",), engine_key="a-secret"
    )
    assert post_body(server, BODY).status_code == 200
    assert engine.bodies[0]["model"] == "/models/x" and engine.keys == ["Bearer a-secret"]


def test_local_and_remote_models_are_served_together(
    engine: ScriptedEngine, launch: Callable[..., Server], checkpoints: Path
) -> None:
    server = launch(checkpoints / "tiny", checkpoints / "other", engine_urls=(f"other={engine.url}",))
    assert post_body(server, BODY | {"top_k": 3}).status_code == 200 and not engine.bodies
    assert post_body(server, BODY | {"model": "other"}).json()["choices"][0]["text"] == "abc"
    facts = {each["name"]: each["facts"] for each in httpx.get(f"{server.url}/look/landing").json()["models"]}
    assert "another engine writes" in facts["other"] and "another engine" not in facts["tiny"]
    told = {each["id"]: each["written_elsewhere"] for each in httpx.get(f"{server.url}/v1/models").json()["data"]}
    assert told == {"tiny": False, "other": True}


@pytest.mark.parametrize(
    ("pieces", "reason", "text", "finished"),
    [
        (["ab", "c"], "length", "abc", "length"),
        (["a", "", "b"], "stop", "ab", "stop"),
        ([], "stop", "", "stop"),
        (["abXc"], "stop", "ab", "stop"),  # some engines also send the stop string
        (["ab", "X", "Yc"], "length", "ab", "stop"),
        (["b" * 100], "length", "b" * 63, "length"),  # more than fits into the context
    ],
)
def test_streamed_text_and_finish_reasons(
    engine: ScriptedEngine, remote_server: Server, pieces: list[str], reason: str, text: str, finished: str
) -> None:
    engine.pieces, engine.reason = pieces, reason
    for more in ({}, {"logprobs": 1}):
        (choice,) = post_body(remote_server, BODY | {"stop": "X"} | more).json()["choices"]
        assert (choice["text"], choice["finish_reason"]) == (text, finished)


def test_the_page_says_how_a_text_ended(engine: ScriptedEngine, remote_server: Server) -> None:
    engine.pieces, engine.reason = ["abc"], "stop"
    assert write_text(remote_server)[-1]["why"] == "The model ended its text here."
    engine.reason = "length"
    assert write_text(remote_server)[-1]["why"] == (
        "Another engine wrote 12 tokens, as asked for. Tokenized by this model, its text has 3."
    )
    assert write_text(remote_server, max_new_tokens=3)[-1]["why"] == ""


@pytest.mark.parametrize(
    ("script", "status", "said"),
    [
        ({"status": 500, "error": {"error": {"message": "a secret"}}}, 502, "tiny failed: it answered 500."),
        ({"status": 400, "error": {"detail": "a secret"}}, 502, "tiny failed: it answered 400."),
        ({"status": 401, "error": "a secret"}, 502, "tiny failed: it answered 401."),
        ({"status": 429, "error": {}}, 429, "Too many requests"),
        ({"error": "a secret"}, 502, "tiny failed: it reported an error."),
        ({"error": {"message": "a secret"}}, 502, "tiny failed: it reported an error."),
        ({"pieces": ["ab"], "reason": 3, "error": ["a secret"]}, 502, "it reported an error."),
        ({"pieces": [{"not": "text"}]}, 502, "its response is invalid"),
        ({"reason": None}, 502, "it ended the text without saying why"),
        ({"pieces": ["é"]}, 502, "wrote text that this model cannot read: "),
    ],
)
def test_engine_failures_become_502(
    engine: ScriptedEngine,
    remote_server: Server,
    script: dict[str, Any],
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logged: list[Any] = []
    monkeypatch.setattr(engine_client.log, "warning", lambda *said: logged.append(said))
    vars(engine).update(script)
    answer = post_body(remote_server, BODY)
    assert answer.status_code == status and said in error_of(answer)["message"]
    assert engine.url not in answer.text and "a secret" not in answer.text
    assert ("a secret" in str(logged)) == ("a secret" in str(script))  # but in the log
    assert error_of(answer)["code"] == {502: "engine_lost", 429: "queue_full"}[status]
    last = write_text(remote_server)[-1]
    assert last["state"] == "failed" and (said in last["why"] or status == 429)


def test_broken_stream_ends_with_an_error_object(engine: ScriptedEngine, remote_server: Server) -> None:
    engine.reason = None
    with httpx.stream("POST", f"{remote_server.url}/v1/completions", json=BODY | {"stream": True}) as answer:
        *texts, error, done = [line.removeprefix("data: ") for line in answer.iter_lines() if line]
    assert "".join(json.loads(text)["choices"][0]["text"] for text in texts) == "abc"
    assert json.loads(error)["error"]["code"] == "engine_lost" and done == "[DONE]"


def test_engine_is_used_again_after_an_outage(launch: Callable[..., Server], checkpoints: Path) -> None:
    port = free_port()
    server = launch(checkpoints / "tiny", engine_urls=(f"http://127.0.0.1:{port}/v1",))
    for _ in range(2):
        answer = post_body(server, BODY)
        assert answer.status_code == 502
        assert error_of(answer)["message"] == "The engine that writes for tiny cannot be reached."
        assert str(port) not in answer.text
    assert write_text(server)[-1]["state"] == "failed"
    assert (
        post_body(server, {"model": "tiny", "prompt": "ab"}, "attention").status_code == 200
    )  # the page still shows heads
    engine = ScriptedEngine(port)
    assert post_body(server, BODY).json()["choices"][0]["text"] == "abc"
    engine.close()
    assert post_body(server, BODY).status_code == 502


def test_visitors_cannot_choose_the_engine(engine: ScriptedEngine, remote_server: Server) -> None:
    elsewhere = ScriptedEngine()
    for name in ("engine_url", "base_url", "url"):
        assert post_body(remote_server, BODY | {name: elsewhere.url}).status_code == 400
        write_text(remote_server, **{name: elsewhere.url})
    assert post_body(remote_server, BODY | {"model": elsewhere.url}).status_code == 404
    httpx.post(
        f"{remote_server.url}/v1/completions?engine_url={elsewhere.url}", json=BODY, headers={"Host": "example.test"}
    )
    elsewhere.close()
    assert not elsewhere.bodies and engine.bodies


def test_what_a_vocabulary_puts_before_prompts_is_not_sent(
    engine: ScriptedEngine, launch: Callable[..., Server], tmp_path: Path
) -> None:
    loaded = tiny_model(0, from_spec(llama2()), context_length=64)
    loaded.save(tmp_path / "llama")
    server = launch(tmp_path / "llama", engine_urls=(engine.url,))
    ids = loaded.parse_prompt("the \u0416")
    assert post_body(server, {"prompt": "the \u0416"}).status_code == 200
    assert post_body(server, {"prompt": ids}).status_code == 200
    assert new_ids(write_text(server, model="llama", prompt=ids))[: len(ids)] == ids
    assert [body["prompt"] for body in engine.bodies] == ["the \u0416"] * 3
    assert "into other ids than these" in error_of(post_body(server, {"prompt": ids[1:]}))["message"]


def test_ids_that_do_not_survive_retokenization_are_refused(
    engine: ScriptedEngine, launch: Callable[..., Server], pairs: Path
) -> None:
    server = launch(pairs, engine_urls=(engine.url,))
    loaded = server.served.models["pairs"]
    whole = loaded.tokenizer.encode(" fine")
    assert len(whole) == 1
    split = [token for character in " fine" for token in loaded.tokenizer.encode(character)]
    assert post_body(server, {"prompt": whole}).status_code == 200
    error = error_of(post_body(server, {"prompt": split}))
    assert error["param"] == "prompt" and "which is tokenized into other ids than these" in error["message"]
    half = loaded.tokenizer.encode("é")[:1]
    assert loaded.tokenizer.token_bytes(half[0]) != "é".encode()
    assert "an incomplete character" in error_of(post_body(server, {"prompt": half}))["message"]
    # On the page, this text is continued.
    branch = {"of": "x", "model": "pairs", "sha256": loaded.sha256, "n_prompt": 1, "ids": split, "instead": None}
    pointers = write_text(server, model="pairs", branch=branch)
    assert new_ids(pointers) == [*split, *loaded.tokenizer.encode("abc")] and engine.bodies[-1]["prompt"] == " fine"


def test_partial_words_are_held_back(engine: ScriptedEngine, launch: Callable[..., Server], pairs: Path) -> None:
    engine.pieces = [" a fi", "ne d", "ay, is", "n't it", "?"]
    server = launch(pairs, engine_urls=(engine.url,))
    loaded = server.served.models["pairs"]
    shown = threading.Event()
    engine.go_on = lambda: shown.wait(20)
    with streamed(server, model="pairs", prompt="It's", max_new_tokens=50) as pointers:
        sent = [next(pointers)]
        while sent[-1]["tokens"] < len(loaded.tokenizer.encode("It's a fine day, isn't")):
            sent.append(next(pointers))
        shown.set()
        sent += pointers
    assert new_ids(sent) == [*loaded.tokenizer.encode("It's"), *loaded.tokenizer.encode(" a fine day, isn't it?")]
    assert sent[-1]["rows"] == sent[-1]["tokens"]


URL = "http://localhost:8000/v1"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], {}),
        (["--engine-url", f"{URL}/"], {"a": EngineAddress(URL), "b": EngineAddress(URL)}),
        (["--engine-url", f"b={URL}", "--engine-model", "b=/m/b"], {"b": EngineAddress(URL, "/m/b")}),
        (["--engine-url", f"b={URL}", "--engine-model", "/m/b"], {"b": EngineAddress(URL, "/m/b")}),
        (
            ["--engine-url", f"b={URL}", "https://x.test/v1", "--engine-key", "k", "--engine-model", "m"],
            {"a": EngineAddress("https://x.test/v1", "m", "k"), "b": EngineAddress(URL, "m", "k")},
        ),
    ],
)
def test_engine_flags_are_parsed_into_addresses(arguments: list[str], expected: dict[str, EngineAddress]) -> None:
    assert parse_addresses(settings.parse(["--checkpoint", "a", "b", *arguments], {})) == expected


def test_engine_url_is_read_from_the_environment() -> None:
    chosen = settings.parse(["--checkpoint", "a", "b"], {"HEADSCOPE_ENGINE_URL": f"a={URL},b=https://x.test/v1"})
    assert parse_addresses(chosen) == {"a": EngineAddress(URL), "b": EngineAddress("https://x.test/v1")}


@pytest.mark.parametrize(
    ("urls", "models", "said"),
    [
        (("localhost:8000/v1",), (), "must be like http://HOST:PORT/v1, found 'localhost:8000/v1'"),
        (("ftp://x/v1",), (), "must be like http"),
        (("http://x:8000",), (), "must be the base URL of the engine's routes, http://x:8000/v1"),
        ((f"c={URL}",), (), "--engine-url names c, which is not one of the models: a"),
        ((), ("m",), "--engine-model requires --engine-url"),
        ((URL,), ("c=m",), "--engine-model names c, which is not one of the models: a"),
    ],
)
def test_invalid_engine_flags_stop_the_start(
    urls: tuple[str, ...],
    models: tuple[str, ...],
    said: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen = Settings(checkpoints=("a",), port=free_port(), engine_urls=urls, engine_models=models)
    monkeypatch.setattr("web.settings.parse", lambda *_: chosen)
    with pytest.raises(SystemExit) as stopped:
        app.main()
    assert stopped.value.code == 2 and said in caplog.text
