"""The server's parsing of links to a view: those that link.mjs writes, and invalid ones."""

import pytest

from helpers.links import GOOD_QUERY, LINK_SETTINGS, encode_ids, served_under
from helpers.server import CONTEXT
from helpers.siege.fuzz import a_query_that_nobody_wrote, few, ids_survive, ids_that_nobody_wrote
from web.page import link_preview
from web.page.controls import WORDS
from web.page.link import BadLink, Link, parse_link, parse_settings
from web.page.link_preview import SENTENCE, sentence_about
from web.serving.snapshots import Snapshots

SERVED = served_under(tiny="a" * 64, other="b" * 64)
SNAPSHOTS = Snapshots(SERVED)


@pytest.mark.parametrize(
    ("ids", "text"), [([0], "AA"), ([127, 128, 50256], "f4AB0IgD"), ([2**35 - 1, 0, 16383, 16384], "_____38A_3-AgAE")]
)
def test_ids_are_encoded_as_in_link_test_mjs(ids: list[int], text: str) -> None:
    assert encode_ids(ids) == text


def test_ids_round_trip() -> None:
    few(ids_survive())


def test_invalid_ids_are_refused() -> None:
    few(ids_that_nobody_wrote())


def test_invalid_queries_are_refused() -> None:
    few(a_query_that_nobody_wrote(SERVED))


def test_valid_query_is_parsed() -> None:
    link = parse_link(SNAPSHOTS, GOOD_QUERY)
    assert link is not None and (link.loaded.name, link.ids, link.n_prompt) == ("tiny", [1, 2, 3], 2)
    assert parse_link(SNAPSHOTS, {"__theme": "dark", "model": "tiny"}) is None
    renamed = parse_link(SNAPSHOTS, GOOD_QUERY | {"model": "gone"})
    assert renamed is not None and renamed.loaded.name == "tiny"
    full = parse_link(SNAPSHOTS, GOOD_QUERY | {"ids": encode_ids([1] * (CONTEXT + 1))})
    assert full is not None and len(full.ids) == CONTEXT + 1
    settings, notices = parse_settings(SERVED, link, GOOD_QUERY | LINK_SETTINGS, WORDS)
    assert (settings["max_new_tokens"], settings["seed"], settings["temperature"], notices) == (20, -3, 0.8, [])
    assert parse_settings(SERVED, link, GOOD_QUERY, {}) == ({}, [])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"model": "nowhere", "sha256": "c" * 16},
            "There is no model 'nowhere'. Available: tiny, other",
        ),
        ({"sha256": "c" * 16}, "tiny has different weights here"),
        ({"sha256": ""}, "which weights"),
        ({"ids": encode_ids([1, 96])}, "tiny cannot read the text of this link"),
        ({"ids": encode_ids([1] * CONTEXT + [96])}, "tiny cannot read the text of this link"),
        ({"ids": encode_ids([1] * (CONTEXT + 2))}, f"at most {CONTEXT} tokens"),
        ({"ids": ""}, "cut off"),
        ({"ids": "A"}, "cut off"),
        ({"ids": "gA"}, "cut off"),
        ({"ids": "_____w"}, "cut off"),
        ({"prompt": "4"}, "which part"),
        ({"prompt": "0"}, "which part"),
        ({"prompt": "\u0661"}, "which part"),
    ],
)
def test_problems_are_named(changes: dict[str, str], said: str) -> None:
    with pytest.raises(BadLink) as error:
        parse_link(SNAPSHOTS, GOOD_QUERY | changes)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"temperature": "nan"}, "temperature must be a number"),
        ({"temperature": "9"}, "temperature must be from 0 to 2"),
        ({"length": "99999999999"}, "max_new_tokens must be"),
        ({"seed": "9" * 20}, "seed"),
        ({"top_p": "0"}, "top_p"),
    ],
)
def test_unusable_settings_are_named(changes: dict[str, str], said: str) -> None:
    link = Link(SERVED.models["tiny"], [1, 2], 2, None)
    settings, (notice,) = parse_settings(SERVED, link, LINK_SETTINGS | changes, WORDS)
    assert settings == {} and said in notice


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("to be\n  or not\n", "to be or not"),
        ("word " * 12, " ".join(["word"] * 12)),
        ("", SENTENCE),
        (" \n ", SENTENCE),
    ],
)
def test_first_words_of_a_linked_text(text: str, sentence: str) -> None:
    served = served_under(tiny="a" * 16)
    ids = served.models["tiny"].tokenizer.encode(text)
    assert sentence_about(served, GOOD_QUERY | {"ids": encode_ids(ids)}) == sentence


def test_first_words_are_cut_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    served = served_under(tiny="a" * 16)
    query = GOOD_QUERY | {"ids": encode_ids(served.models["tiny"].tokenizer.encode("to be or not to be"))}
    monkeypatch.setattr(link_preview, "MAX_CHARACTERS", 7)
    assert sentence_about(served, query) == "to be…"
    monkeypatch.setattr(link_preview, "MAX_CHARACTERS", 1)
    assert sentence_about(served, query) == "t…"
    monkeypatch.setattr(link_preview, "MAX_TOKENS", 8)
    monkeypatch.setattr(link_preview, "MAX_CHARACTERS", 50)
    assert sentence_about(served, query) == "to be or…"
