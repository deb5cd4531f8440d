"""The page's description of a model before it is chosen."""

from pathlib import Path

import pytest

from helpers.models import tiny_model
from web.page.model_list import MAX_ABOUT, MAX_CARD_BYTES, about, count, facts, model_list
from web.services import Services

CARD = """---
license: mit
---
# A model

![chart](chart.png)

A small GPT that writes plays. It has two layers.

## Data

| text | size |
|---|---|

Trained on the plays
of Shakespeare; 1 MB. Nothing else.
"""


def said(folder: Path, card: str) -> str:
    (folder / "README.md").write_text(card, encoding="utf-8")
    return about(folder)


def test_the_first_sentence_about_the_data(tmp_path: Path) -> None:
    assert said(tmp_path, CARD) == "Trained on the plays of Shakespeare; 1 MB."
    assert said(tmp_path, CARD.partition("## Data")[0]) == "A small GPT that writes plays."
    assert said(tmp_path, "Only this") == "Only this"
    assert said(tmp_path, "# Title\n\n- a list\n") == ""


def test_a_long_sentence_is_cut(tmp_path: Path) -> None:
    found = said(tmp_path, "word " * 100)
    assert len(found) == MAX_ABOUT and found.endswith("…")


@pytest.mark.parametrize("content", [b"\xff\xfe broken", b"x" * (MAX_CARD_BYTES + 1)])
def test_a_card_that_cannot_be_used_says_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "README.md").write_bytes(content)
    assert about(tmp_path) == ""
    assert about(tmp_path / "nowhere") == ""


def test_facts_about_a_model(services: Services) -> None:
    assert facts(services.served.models["tiny"]).split(" · ")[1:] == [
        "3 layers × 4 heads", "context 64", "float32 on CPU"
    ]  # fmt: skip
    listed = model_list(services)
    assert [model["name"] for model in listed] == ["tiny", "other"]
    assert all(
        set(model) == {"name", "label", "facts", "about", "chat", "sampling", "spaced", "steps", "until"}
        for model in listed
    )


@pytest.mark.parametrize(
    ("n", "said"),
    [
        (99_999, "99,999"),
        (135_000_000, "135.0 M"),
        (999_949_999, "999.9 M"),
        (999_950_000, "1.0 B"),
        (1_235_814_400, "1.2 B"),
    ],
)
def test_a_number_of_weights_is_short(n: int, said: str) -> None:
    assert count(n) == said


def test_a_context_that_was_cut_says_so() -> None:
    loaded = tiny_model()
    used = loaded.config.context_length
    for declared, said in ((0, f"context {used}"), (used, f"context {used}"), (32_768, f"context {used} of 32,768")):
        loaded.declared_context = declared
        assert said in facts(loaded).split(" · ")


def test_facts_name_rows_without_a_token() -> None:
    assert facts(tiny_model(vocab_size=66)).endswith(" · 1 row of the vocabulary without a token, never drawn")
