"""Conversations on the page: messages become the prompt of a text, and its pointers say where each of them is."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from helpers.oracles.chat_templates import chat_model
from helpers.runs import FIELDS, new_ids, write_text
from helpers.server import Server, save_tiny, start
from model import LoadedModel

USER = {"role": "user", "content": "Why? 🙂"}
SYSTEM = {"role": "system", "content": "Be brief."}
START = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"


def turn(role: str, content: str) -> str:
    return f"<|im_start|>{role}\n{content}<|im_end|>\n"


ANSWER = "<|im_start|>assistant\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of "chat", whose template is ChatML, "mistral", and "tiny" without a template."""
    folder = tmp_path_factory.mktemp("chats")
    chat_model("chatml", context_length=128).save(folder / "chat")
    chat_model("mistral").save(folder / "mistral")
    server = start(folder / "chat", folder / "mistral", save_tiny(folder / "tiny"))
    yield server
    server.close()


@pytest.fixture
def loaded(server: Server) -> LoadedModel:
    return server.served.models["chat"]


def say(server: Server, *messages: dict[str, Any], **changes: Any) -> list[dict[str, Any]]:
    return write_text(server, **{"model": "chat", "prompt": "", "messages": messages} | changes)


def check_turns(loaded: LoadedModel, ids: list[int], chat: list[dict[str, Any]]) -> None:
    for message in chat:
        text = b"".join(map(loaded.tokenizer.token_bytes, ids[message["start"] : message["end"]])).decode()
        assert text == message["content"]


def test_a_message_is_answered_and_the_conversation_goes_on(server: Server, loaded: LoadedModel) -> None:
    pointers = say(server, USER)
    prompt = START + turn("user", USER["content"]) + ANSWER
    ids, n_prompt = new_ids(pointers), pointers[-1]["n_prompt"]
    assert ids[:n_prompt] == loaded.parse_prompt(prompt) and pointers[-1]["written"] == len(ids) - n_prompt > 0
    steps = loaded.generate(prompt, 12, temperature=0.8, seed=1)
    assert [step.token_id for step in steps if step.token_id not in loaded.end_token_ids] == ids[n_prompt:]
    assert pointers[-1]["settings"]["prompt"] == prompt
    for pointer in pointers:
        (message,) = pointer["chat"]
        assert {name: message[name] for name in USER} == USER
    check_turns(loaded, ids, pointers[-1]["chat"])
    assert set(loaded.tokenizer.special_tokens.values()) & set(ids) == set(pointers[-1]["special"])

    earlier = [{name: message[name] for name in USER} for message in pointers[-1]["chat"]]
    answer = {"role": "assistant", "ids": ids[n_prompt:]}
    pointers = say(server, SYSTEM, *earlier, answer, USER)
    answered = loaded.tokenizer.decode(ids[n_prompt:])
    whole = turn("system", SYSTEM["content"]) + turn("user", USER["content"]) + turn("assistant", answered)
    whole += turn("user", USER["content"]) + ANSWER
    again, n_prompt = new_ids(pointers), pointers[-1]["n_prompt"]
    assert again[:n_prompt] == loaded.parse_prompt(whole)
    assert [message["role"] for message in pointers[-1]["chat"]] == ["system", "user", "assistant", "user"]
    assert pointers[-1]["chat"][2]["content"] == answered


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": "tiny"}, "tiny has no chat template."),
        (
            {"model": "mistral", "messages": [USER, USER]},
            "The chat template of mistral cannot be used for these messages: Conversation roles must alternate "
            "user/assistant/user/assistant/...",
        ),
        ({"messages": [SYSTEM, {"role": "user", "content": ""}]}, "The message is empty."),
        ({"messages": []}, "messages must be 1 to 1,000 messages"),
        ({"messages": "Hi"}, "messages must be 1 to 1,000 messages"),
        ({"messages": [USER] * 1_001}, "messages must be 1 to 1,000 messages"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "whose role is system, user or assistant"),
        ({"messages": [{"role": "user", "content": 7}]}, "The content of a message must be text, found 7"),
        ({"messages": [{"role": "user"}]}, "The content of a message must be text"),
        ({"messages": [{"role": "assistant", "ids": [10**6]}]}, "1000000"),
        ({"messages": [{"role": "assistant", "ids": ["a"]}]}, "'a'"),
        ({"messages": [{"role": "user", "content": "x y " * 10_001}]}, "The messages have 40,004 characters"),
        ({"messages": [{"role": "user", "content": "x y " * 200}]}, "The conversation has 651 tokens"),
        ({"temperature": -1}, "temperature"),
    ],
)
def test_what_cannot_be_answered_is_refused(server: Server, changes: dict[str, Any], said: str) -> None:
    body = FIELDS | {"model": "chat", "messages": [USER]} | changes
    answer = httpx.post(f"{server.url}/look/write", json=body)
    assert answer.status_code == 400 and said in answer.text, answer.text
    assert not server.running


def test_a_shifted_context_is_no_conversation(server: Server) -> None:
    pointers = say(server, USER, context_shift=True, max_new_tokens=140, seed=3)
    assert "chat" in pointers[0] and pointers[-1]["earlier"]
    assert "chat" not in pointers[-1]


def landing(server: Server, pointers: list[dict[str, Any]], chat: Any) -> dict[str, Any]:
    ids, last = new_ids(pointers), pointers[-1]
    bits = b"".join(bytes([i & 127 | 128, i >> 7]) if i > 127 else bytes([i]) for i in ids)
    query = {"model": "chat", "sha256": last["sha256"][:16], "ids": base64url(bits), "prompt": str(last["n_prompt"])}
    text = chat if isinstance(chat, str) else json.dumps(chat)
    answer = httpx.get(f"{server.url}/look/landing", params=query | {"chat": text})
    return dict(answer.raise_for_status().json())


def base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def test_a_link_restores_the_conversation(server: Server, loaded: LoadedModel) -> None:
    answer = {"role": "assistant", "content": "Why?"}
    pointers = say(server, SYSTEM, USER, answer, USER)
    chat = pointers[-1]["chat"]
    spans = [[message["role"], message["start"], message["end"]] for message in chat]
    contents = [[*span, message["content"]] for span, message in zip(spans, chat, strict=True)]
    unknown = [[message["role"], None, None, message["content"]] for message in chat]
    for linked in (spans, contents):
        found = landing(server, pointers, linked)
        assert found["pointer"]["chat"] == chat and found["pointer"]["notices"] == []
        assert found["pointer"]["special"] == pointers[-1]["special"]
    nowhere = [message | {"start": None, "end": None} for message in chat]
    assert landing(server, pointers, unknown)["pointer"]["chat"] == nowhere


@pytest.mark.parametrize(
    "chat",
    [
        "[",
        "[" * 100_000,
        "7",
        [],
        [["user"]],
        [["tool", 20, 23]],
        [["user", 20, 23, "another text"]],
        [["user", 20, 1000]],
        [["user", 23, 20]],
        [["user", -2, 3]],
        [["user", 20, None]],
        [["user", 20, 23], ["user", 22, 25]],
        [["user", None, None, 7]],
        {"user": 1},
    ],
)
def test_a_forged_conversation_is_not_restored(server: Server, chat: Any) -> None:
    pointers = say(server, USER, max_new_tokens=2)
    if isinstance(chat, str) and len(chat) > 10_000:
        chat = chat[:5_000]  # no longer than an address may be
    pointer = landing(server, pointers, chat)["pointer"]
    assert "chat" not in pointer and pointer["state"] == "linked"
    assert pointer["notices"] == ["The conversation of this link cannot be continued."]


def test_the_page_knows_which_models_have_a_template(server: Server) -> None:
    models = httpx.get(f"{server.url}/look/landing").json()["models"]
    assert {model["name"]: model["chat"] for model in models} == {"chat": True, "mistral": True, "tiny": False}
