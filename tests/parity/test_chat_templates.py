"""Conversations become the prompts that transformers makes of them, and each message is found in its prompt."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from helpers import run_async
from helpers.files import edit_json, write_json
from helpers.oracles.chat_templates import CHATS, chat_model
from model import InputError, LoadedModel, load
from web.serving.chat_templates import Templates
from web.serving.conversation import Span, locate, prompt_ids, render

SYSTEM = {"role": "system", "content": "Be brief: user, assistant."}
TURNS = [
    {"role": "user", "content": " Why?\n"},
    {"role": "assistant", "content": "Why? 🙂 Because é <b>&amp;</b>\n"},
    {"role": "user", "content": "Why?"},
]
THOUGHT = {"role": "assistant", "content": "<think>\nWhy? Hmm.\n</think>\n\nWhy? I see."}
CONVERSATIONS = [TURNS[:1], TURNS, [SYSTEM, *TURNS], [SYSTEM, TURNS[0], THOUGHT, TURNS[2]]]
PIECES = {  # templates that show one thing each
    "json": "{{ messages | tojson }}{{ messages | tojson(indent=2, ensure_ascii=True, sort_keys=True) }}",
    "loops": (
        "{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ m.content }}{% break %}{% endfor %}"
    ),
    "generation": (
        "{% set x = 1 %}{% for m in messages %}\n  {% generation %}{% set x = 2 %}{{ loop.index }}{{ m.content }}"
        "{% endgeneration %}\n{{ x }}{% endfor %}"
    ),
    "clock": "{{ strftime_now('%d %B %Y') }}",
    "no beginning": "{{ messages[0].content }}",
    "nothing": "{{ tools is none }}{{ documents is none }}{{ tools is defined }}{{ bos_token is defined }}",
}


@pytest.fixture(scope="module")
def templates() -> Iterator[list[Templates]]:
    """The templates of each event loop that a test runs, whose processes end after the last test."""
    made: list[Templates] = []
    yield made
    for each in made:
        each.close()


def found(templates: list[Templates], loaded: LoadedModel, messages: list[dict[str, str]], options: Any = None) -> Any:
    """The prompt, its token ids, and the tokens of each message."""

    async def find() -> tuple[str, list[Span | None]]:
        templates.append(own := Templates())
        try:
            prompt = await render(own, "client", loaded, messages, template_options=options)
            return prompt, await locate(own, "client", loaded, messages, prompt)
        finally:
            for process in own.processes:
                await process.end()

    prompt, spans = run_async(find())
    return prompt, prompt_ids(loaded, prompt), spans


def theirs(loaded: LoadedModel, folder: Path, messages: list[dict[str, str]], tokenize: bool = False) -> Any:
    loaded.save(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    rendered = tokenizer.apply_chat_template(messages, tokenize=tokenize, add_generation_prompt=True)
    return rendered["input_ids"] if tokenize else rendered


@pytest.mark.parametrize("name", CHATS)
def test_prompts_equal_those_of_transformers(name: str, tmp_path: Path, templates: list[Templates]) -> None:
    loaded = chat_model(name)
    for i, messages in enumerate(CONVERSATIONS):
        prompt, ids, _ = found(templates, loaded, messages)
        assert prompt == theirs(loaded, tmp_path / str(i), messages)
        assert ids == theirs(loaded, tmp_path / f"{i} ids", messages, tokenize=True)


@pytest.mark.parametrize("kind", ["chatml", "llama 2", "llama 3"])
@pytest.mark.parametrize("name", PIECES)
def test_templates_find_what_transformers_gives_them(
    name: str, kind: str, tmp_path: Path, templates: list[Templates]
) -> None:
    loaded = chat_model(kind)
    loaded.chat_template = PIECES[name]
    prompt, ids, _ = found(templates, loaded, TURNS)
    assert prompt == theirs(loaded, tmp_path / "model", TURNS)
    assert ids == theirs(loaded, tmp_path / "ids", TURNS, tokenize=True)  # no <s> but the template's


NAMES = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token", "image_token"]
ALL_NAMES = "".join(f"{{% if {name} is defined %}}{name} is {{{{ {name} }}}}. {{% endif %}}" for name in NAMES)
ADDED = {"content": "<|im_end|>", "lstrip": False, "normalized": False, "rstrip": False, "single_word": False}
ABSENT = {"bos_token": ..., "eos_token": ..., "unk_token": ...}


@pytest.mark.parametrize(
    ("config", "older"),
    [
        ({"bos_token": None, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}, {}),
        ({"eos_token": ADDED | {"__type": "AddedToken"}}, {}),
        (ABSENT, {"eos_token": ADDED, "pad_token": "<|im_start|>"}),
        ({"eos_token": "<|endoftext|>"}, {"eos_token": "<|im_end|>"}),
        ({"eos_token": "<|endoftext|>", "added_tokens_decoder": {}}, {"eos_token": "<|im_end|>"}),
        (ABSENT | {"tokenizer_class": "Qwen2Tokenizer"}, {}),
        (ABSENT | {"tokenizer_class": "GPT2Tokenizer", "bos_token": None}, {}),
        (ABSENT | {"tokenizer_class": ...}, {}),
        ({"extra_special_tokens": {"image_token": "<|im_start|>"}}, {}),
        ({"image_token": "<|im_start|>"}, {}),
        (ABSENT, {}),
    ],
)
def test_templates_find_the_special_tokens_of_the_tokenizer(
    config: dict[str, Any], older: dict[str, Any], tmp_path: Path, templates: list[Templates]
) -> None:
    """Those of config.json do not count, and saving keeps them."""
    loaded = chat_model("chatml")
    loaded.chat_template = ALL_NAMES
    loaded.save(tmp_path / "file")
    edit_json(tmp_path / "file" / "config.json", bos_token_id=1, eos_token_id=1)
    edit_json(tmp_path / "file" / "tokenizer_config.json", **config)
    if older:
        write_json(tmp_path / "file" / "special_tokens_map.json", older)
    expected = AutoTokenizer.from_pretrained(tmp_path / "file").apply_chat_template(TURNS, tokenize=False)
    again = load(tmp_path / "file", device="cpu")
    assert found(templates, again, TURNS)[0] == expected
    assert theirs(again, tmp_path / "again", TURNS) == expected
    assert found(templates, load(tmp_path / "again", device="cpu"), TURNS)[0] == expected


def test_options_are_given_to_the_template_as_by_transformers(tmp_path: Path, templates: list[Templates]) -> None:
    loaded = chat_model("chatml")
    loaded.chat_template = (
        "{{ enable_thinking is defined and not enable_thinking }} {{ eos_token }} {{ rest | tojson }}"
    )
    options = {"enable_thinking": False, "eos_token": "mine", "rest": [1.5, None, {"é": True}]}
    loaded.save(tmp_path)
    expected = AutoTokenizer.from_pretrained(tmp_path).apply_chat_template(TURNS, tokenize=False, **options)
    assert found(templates, loaded, TURNS, options)[0] == expected


def text_of(loaded: LoadedModel, ids: list[int]) -> str:
    return b"".join(map(loaded.tokenizer.token_bytes, ids)).decode()


@pytest.mark.parametrize("name", CHATS)
@pytest.mark.parametrize("messages", CONVERSATIONS)
def test_messages_are_found_though_they_repeat(
    name: str, messages: list[dict[str, str]], templates: list[Templates]
) -> None:
    loaded = chat_model(name)
    _, ids, spans = found(templates, loaded, messages)
    in_order = sorted((span, i) for i, span in enumerate(spans) if span)
    assert len(in_order) == len(messages) and all(
        one[1] <= other[0] for (one, _), (other, _) in itertools.pairwise(in_order)
    )
    shown = text_of(loaded, ids)
    after = 0
    for (start, end), i in in_order:
        content = messages[i]["content"]
        read, kept = text_of(loaded, ids[start:end]), content
        if name == "qwen":
            kept = content.rpartition("</think>\n\n")[2]
        is_exact = name == "chatml" or (name == "qwen" and kept == content)  # no white space is stripped or shared
        assert (read == kept) if is_exact and THOUGHT not in messages else (read.strip() == kept.strip())
        # Nothing but the template's own words is before it.
        between = text_of(loaded, ids[after:start])
        assert "Why" not in between and "brief" not in between
        after = end
    assert "Why" not in text_of(loaded, ids[after:]) and shown.count("Why") >= 1


def test_the_content_of_a_message_is_exact_to_the_character(templates: list[Templates]) -> None:
    loaded = chat_model("chatml")
    messages = [{"role": "user", "content": "🙂user\nuser🙂"}, {"role": "assistant", "content": "user"}]
    prompt, ids, spans = found(templates, loaded, messages)
    assert [text_of(loaded, ids[slice(*span)]) for span in spans] == [message["content"] for message in messages]
    header = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n"
    assert text_of(loaded, ids[: spans[0][0]]) == header
    assert prompt.startswith(header)


ONCE = [{"role": "user", "content": "one"}]


@pytest.mark.parametrize(
    ("template", "messages"),
    [
        ("{{ messages[0].content }}, {{ messages[0].content }}", ONCE),  # twice
        ("{{ messages[0].content | upper }}", ONCE),
        ("{{ messages[0].content | length }}", ONCE),
        ("{{ messages[0].content[1:] }}", ONCE),
        ("{% if messages[0].content.startswith('one') %}{{ messages[0].content }}{% endif %}", ONCE),
        ("{{ messages[0].content }}", [{"role": "user", "content": "\U000f0000"}]),
        ("it says nothing", ONCE),
    ],
)
def test_messages_that_cannot_be_located_are_not_guessed(
    template: str, messages: list[dict[str, str]], templates: list[Templates]
) -> None:
    loaded = chat_model("chatml")
    loaded.chat_template = template
    _, _, spans = found(templates, loaded, messages)
    expected: list[Any] = [None]
    if template.endswith("| upper }}"):  # the marks have no upper case
        expected = [(0, len(loaded.parse_prompt("ONE")))]
    assert spans == expected


def test_special_tokens_in_a_message_are_read_as_in_transformers(tmp_path: Path, templates: list[Templates]) -> None:
    loaded = chat_model("chatml")
    messages = [{"role": "user", "content": "a<|im_end|>\n<|im_start|>system\nb"}]
    _, ids, (span,) = found(templates, loaded, messages)
    assert ids == theirs(loaded, tmp_path / "model", messages, tokenize=True)
    assert text_of(loaded, ids[slice(*span)]) == messages[0]["content"]


def test_a_refused_order_is_one_sentence(templates: list[Templates]) -> None:
    with pytest.raises(InputError, match=r"messages: Conversation roles must alternate user/assistant/user/assistant/"):
        found(templates, chat_model("mistral"), [TURNS[0], TURNS[0]])
