"""The chat templates of checkpoints are rendered as in transformers, and never slow down other requests."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from transformers import AutoTokenizer

import model
from helpers import run_async
from helpers.api import error_of, post_body
from helpers.files import write_json
from helpers.models import tiny_model
from helpers.server import Server
from model import LoadedModel
from model.errors import Busy
from model.tokenizer import CharTokenizer
from web.api.schema import Message, as_conversation
from web.serving import chat_templates
from web.serving.chat_templates import Templates
from web.serving.conversation import render

HELLO = [{"role": "user", "content": "Hi"}]
# A template like those of instruction-tuned checkpoints.
TEMPLATE = """\
{%- if messages[0].role == 'assistant' %}{{ raise_exception('The user speaks first.') }}{% endif %}
{%- for message in messages %}
<{{ message['role'] }}>{{ message['content'] | trim }}</{{ message['role'] }}>
{% endfor %}
{%- if add_generation_prompt %}<assistant>{% endif %}
"""


def rendered(loaded: LoadedModel, messages: list[Message]) -> str:
    async def render_once() -> str:
        templates = Templates()
        try:
            return await render(templates, "client", loaded, as_conversation(messages))
        finally:
            for process in templates.processes:
                await process.end()

    return str(run_async(render_once()))


def test_checkpoint_template_is_used(tmp_path: Path) -> None:
    loaded = tiny_model(tokenizer=CharTokenizer.train("".join(map(chr, range(10, 127)))))
    loaded.save(tmp_path / "file")
    (tmp_path / "file" / "chat_template.jinja").write_text(TEMPLATE)
    loaded.chat_template = TEMPLATE
    loaded.save(tmp_path / "config")
    messages = [{"role": "system", "content": " x "}, {"role": "user", "content": "y"}]
    for name in ("file", "config"):
        again = model.load(tmp_path / name)
        theirs = AutoTokenizer.from_pretrained(tmp_path / name)
        expected = theirs.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        assert rendered(again, [Message.model_validate(each) for each in messages]) == expected
        with pytest.raises(model.InputError, match=r"cannot be used for these messages: The user speaks first\."):
            rendered(again, [Message(role="assistant", content="z")])


@pytest.mark.parametrize(
    "template", ["{{ messages.__class__.__mro__ }}", "{{ x.y.z }}", "{% for %}", "{{ range(10**9)|list }}", "{{ 1/0 }}"]
)
def test_failing_or_escaping_templates_are_refused(template: str) -> None:
    loaded = tiny_model()
    loaded.chat_template = template
    with pytest.raises(model.InputError, match="The chat template of tiny cannot be used"):
        rendered(loaded, [Message(role="user", content="y")])


ENDLESS = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
DOUBLING = "{% set n = namespace(x='ab') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x }}"
HARMFUL = {
    ENDLESS: "more than 0.5 seconds",
    "{{ 7 ** (10 ** 9) }}": "(more than 0.5 seconds|MemoryError)",
    DOUBLING: "MemoryError",
    "{{ 'a' * 2000000 }}": "2,000,000 characters",
    "{{ '\\ud800' }}": "half of a surrogate pair",
}


@pytest.mark.parametrize(("template", "why"), HARMFUL.items())
def test_templates_with_excessive_time_or_output_are_stopped(
    template: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The others are refused for their content, even on a machine too busy to answer in half a second.
    monkeypatch.setattr(chat_templates, "RENDER_SECONDS", 0.5 if "seconds" in why else 60)
    loaded = tiny_model()
    loaded.chat_template = template
    with pytest.raises(model.InputError, match=f"The chat template of tiny cannot be used .*{why}"):
        rendered(loaded, [Message(role="user", content="y")])


def test_endless_template_does_not_delay_others(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    models = server.served.models
    models["endless"] = replace(models["tiny"], name="endless", chat_template=ENDLESS)
    models["polite"] = replace(models["tiny"], name="polite", chat_template=TEMPLATE)
    body = {"messages": HELLO, "max_tokens": 1}
    polite = {**body, "model": "polite", "messages": [{"role": "user", "content": "y"}]}
    try:
        assert post_body(server, polite, "chat/completions").status_code == 200
        monkeypatch.setattr(chat_templates, "RENDER_SECONDS", 1.0)
        with ThreadPoolExecutor(2) as pool:
            stuck = [pool.submit(post_body, server, body | {"model": "endless"}, "chat/completions") for _ in range(2)]
            for _ in range(5):
                assert httpx.get(f"{server.url}/health", timeout=1).status_code == 200
                assert post_body(server, polite, "chat/completions").status_code == 200
            assert not all(each.done() for each in stuck)
            assert [each.result().json()["error"]["code"] for each in stuck] == ["chat_template"] * 2
        assert post_body(server, polite, "chat/completions").status_code == 200
    finally:
        del models["endless"], models["polite"]


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [("sys", "executable", "/bin/false"), ("sys", "executable", "/nowhere"), ("self", "START_SECONDS", 0.0)],
)
def test_a_process_that_does_not_start_is_no_fault_of_the_messages(
    server: Server, monkeypatch: pytest.MonkeyPatch, module: str, name: str, value: Any
) -> None:
    models, source = server.served.models, f"{{{{ messages[0].content }}}}{value}"
    models["unstarted"] = replace(models["tiny"], name="unstarted", chat_template=source)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(chat_templates if module == "self" else sys, name, value)
            asked = {"model": "unstarted", "messages": HELLO}
            answer = post_body(server, asked, "chat/completions")
            on_page = httpx.post(f"{server.url}/look/write", json=asked)
        assert answer.status_code == 503 and int(answer.headers["retry-after"]) >= 1
        assert error_of(answer)["code"] == "templates_unavailable" and "cannot start" in error_of(answer)["message"]
        assert on_page.status_code == 503 and "cannot start" in on_page.json()["detail"]
        again = post_body(server, {"model": "unstarted", "messages": HELLO, "max_tokens": 1}, "chat/completions")
        assert again.status_code == 200
    finally:
        del models["unstarted"]


def test_named_templates_can_be_chosen(tmp_path: Path) -> None:
    tiny_model().save(tmp_path / "tiny")
    path = tmp_path / "tiny" / "tokenizer_config.json"
    named = [{"name": "tools", "template": "a"}, {"name": "default", "template": "b"}]
    write_json(path, json.loads(path.read_text()) | {"chat_template": named})
    assert model.load(tmp_path / "tiny").chat_template == "b"
    write_json(path, json.loads(path.read_text()) | {"chat_template": 5})
    with pytest.raises(model.CheckpointError, match="chat_template of another kind"):
        model.load(tmp_path / "tiny")


HI = {"a": "hi"}


def with_templates(check: Callable[[Templates], Awaitable[None]]) -> None:
    async def run() -> None:
        templates = Templates()
        try:
            await check(templates)
        finally:
            for process in templates.processes:
                await process.end()

    run_async(run())


def test_a_client_with_many_conversations_keeps_nobody_out() -> None:
    async def check(templates: Templates) -> None:
        busy = [asyncio.create_task(templates.render("busy", "{{ a }}", HI)) for _ in range(200)]
        await asyncio.sleep(0)
        assert await templates.render("good", "{{ a }}", HI) == "hi"
        answers = await asyncio.gather(*busy, return_exceptions=True)
        assert answers.count("hi") == chat_templates.MAX_PROCESSES - 1 + chat_templates.MAX_WAITING
        assert {type(answer) for answer in answers} == {str, Busy}

    with_templates(check)


@pytest.mark.slow
def test_a_client_with_slow_templates_keeps_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_templates, "RENDER_SECONDS", 60.0)

    async def check(templates: Templates) -> None:
        slow = [asyncio.create_task(templates.render("busy", ENDLESS + str(i), HI)) for i in range(8)]
        await asyncio.sleep(0)
        assert [await templates.render("good", template, HI) for template in ("{{ a }}", "{{ a }}!")] == ["hi", "hi!"]
        for task in slow:
            task.cancel()
        assert {type(each) for each in await asyncio.gather(*slow, return_exceptions=True)} == {asyncio.CancelledError}
        assert not templates.places.active and not templates.places.queue
        assert await templates.render("busy", "{{ a }}", HI) == "hi"

    with_templates(check)


def test_a_template_has_processes_of_its_own_and_the_one_idle_longest_gives_way() -> None:
    async def check(templates: Templates) -> None:
        for i in (0, 1, 0, 2, 3, 4):
            assert await templates.render("client", f"{{{{ a }}}}{i}", HI) == f"hi{i}"
        assert [process.source[-1] for process in templates.processes] == ["0", "2", "3", "4"]

    with_templates(check)


THINKING = "{% if enable_thinking is defined %}{{ enable_thinking }}: {% endif %}{{ messages[0].content }}"


@pytest.fixture
def thinking(server: Server) -> Iterator[Server]:
    models = server.served.models
    models["thinking"] = replace(models["tiny"], name="thinking", chat_template=THINKING)
    yield server
    del models["thinking"]


@pytest.mark.parametrize(
    ("options", "prompt"),
    [
        ({"enable_thinking": False}, "False: Hi"),
        ({"enable_thinking": [1, {"a": None}]}, "[1, {'a': None}]: Hi"),
        ({"of another": 1}, "Hi"),
        ({}, "Hi"),
        (None, "Hi"),
    ],
)
def test_options_reach_the_template(thinking: Server, options: Any, prompt: str) -> None:
    asked = {"model": "thinking", "messages": HELLO, "chat_template_kwargs": options}
    tokens = httpx.post(f"{thinking.url}/tokenize", json=asked | {"return_token_strs": True}).json()
    assert "".join(tokens["token_strs"]) == prompt
    answer = post_body(thinking, asked | {"max_tokens": 1}, "chat/completions")
    assert answer.json()["usage"]["prompt_tokens"] == len(prompt)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"messages": []}, "messages is not one of its options"),
        ({"add_generation_prompt": False}, "add_generation_prompt is not one of its options"),
        ({"a": "x" * 4_000}, "it has 4,009 characters of JSON; at most 4,000 are accepted"),
        ("enable_thinking", "Input should be an object"),
    ],
)
def test_options_that_a_template_cannot_have_are_refused(thinking: Server, options: Any, message: str) -> None:
    asked = {"model": "thinking", "messages": HELLO, "chat_template_kwargs": options}
    for url in (f"{thinking.url}/tokenize", f"{thinking.url}/v1/chat/completions"):
        answer = httpx.post(url, json=asked)
        error = error_of(answer)
        assert answer.status_code == 400 and error["param"] == "chat_template_kwargs" and message in error["message"]


def test_a_number_that_python_would_not_print_is_refused(thinking: Server) -> None:
    content = b'{"messages": [{"role": "user", "content": "Hi"}], "chat_template_kwargs": {"a": %s}}' % (b"9" * 5_000)
    assert post_body(thinking, content, "chat/completions").status_code == 400


def test_options_need_a_template(server: Server) -> None:
    asked = {"model": "tiny", "messages": HELLO, "max_tokens": 1}
    answer = post_body(server, asked | {"chat_template_kwargs": {"enable_thinking": False}}, "chat/completions")
    assert "tiny has no chat template" in error_of(answer)["message"]
    for nothing in ({}, None):
        assert post_body(server, asked | {"chat_template_kwargs": nothing}, "chat/completions").status_code == 200


def test_sampling_settings_of_a_model_are_listed_and_used_only_where_asked_for(server: Server) -> None:
    models, own = server.served.models, {"temperature": 0.0, "top_p": 0.9}
    models["opinionated"] = replace(models["tiny"], name="opinionated", generation_config=own)
    try:
        listed = httpx.get(f"{server.url}/v1/models/opinionated").json()["default_sampling"]
        assert listed == own
        assert httpx.get(f"{server.url}/v1/models/tiny").json()["default_sampling"] == {}
        asked = {"prompt": "ab", "max_tokens": 8, "seed": 1}
        texts = [
            post_body(server, {"model": name} | asked | more).json()["choices"][0]["text"]
            for name, more in (("tiny", {}), ("opinionated", {}), ("tiny", own), ("opinionated", own))
        ]
        assert texts[0] == texts[1] != texts[2] == texts[3]
    finally:
        del models["opinionated"]
