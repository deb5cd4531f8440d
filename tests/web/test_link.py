"""What the server reads in a link to a view: what link.mjs writes, and what nobody wrote."""

import base64
from dataclasses import replace

import pytest
from conftest import CHARACTERS, CONTEXT
from helpers import tiny_model
from hypothesis import given
from hypothesis import strategies as st

from model.tokenizer import CharTokenizer
from web.page.link import BadLink, decode_ids, read_link, read_settings
from web.serving.served_models import ServedModels
from web.settings import Settings

RANGES = {"temperature": (0, 2), "max_new_tokens": (1, 1024), "top_k": (0, 100), "top_p": (0.05, 1), "min_p": (0, 1)}
SETTINGS = {"length": "20", "temperature": "0.8", "top_k": "0", "top_p": "1", "min_p": "0", "seed": "-3"}


def encode_ids(ids: list[int]) -> str:
    """What link.mjs does."""
    data = bytearray()
    for number in ids:
        while number > 127:
            data.append(128 + number % 128)
            number //= 128
        data.append(number)
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def served_under(**models: str) -> ServedModels:
    """One small model, served under these names with these hashes."""
    loaded = tiny_model(tokenizer=CharTokenizer.train(CHARACTERS), context_length=CONTEXT)
    served = ServedModels(Settings(checkpoints=()))
    served.models = {name: replace(loaded, name=name, sha256=sha256) for name, sha256 in models.items()}
    served.ready.set_result(None)
    return served


SERVED = served_under(tiny="a" * 64, other="b" * 64)
GOOD = {"model": "tiny", "sha256": "a" * 16, "ids": encode_ids([1, 2, 3]), "prompt": "2"}


@given(st.lists(st.integers(0, 2**35 - 1), min_size=1, max_size=50))
def test_ids_survive(ids: list[int]) -> None:
    assert decode_ids(encode_ids(ids), 50) == ids


@given(st.text() | st.text("AZaz09-_/+=", max_size=40))
def test_ids_that_nobody_wrote(text: str) -> None:
    try:
        ids = decode_ids(text, 8)
    except BadLink:
        return
    assert 1 <= len(ids) <= 8 and all(0 <= number < 2**35 for number in ids)


@given(st.dictionaries(st.sampled_from([*GOOD, *SETTINGS]), st.text(max_size=30)))
def test_a_query_that_nobody_wrote(changes: dict[str, str]) -> None:
    query = GOOD | SETTINGS | changes
    try:
        link = read_link(SERVED, query)
    except BadLink as error:
        assert str(error).isprintable()
    else:
        assert link is not None and link.loaded.name in SERVED.models and 1 <= link.n_prompt <= len(link.ids)
    settings, notices = read_settings(SERVED, SERVED.models["tiny"], "ab", query)
    assert bool(settings) != bool(notices)
    assert all(least <= settings[field] <= most for field, (least, most) in RANGES.items() if settings)


def test_a_good_query() -> None:
    link = read_link(SERVED, GOOD)
    assert link is not None and (link.loaded.name, link.ids, link.n_prompt) == ("tiny", [1, 2, 3], 2)
    assert read_link(SERVED, {"__theme": "dark", "model": "tiny"}) is None
    renamed = read_link(SERVED, GOOD | {"model": "gone"})
    assert renamed is not None and renamed.loaded.name == "tiny"
    full = read_link(SERVED, GOOD | {"ids": encode_ids([1] * (CONTEXT + 1))})
    assert full is not None and len(full.ids) == CONTEXT + 1
    settings, notices = read_settings(SERVED, SERVED.models["tiny"], "ab", GOOD | SETTINGS)
    assert (settings["max_new_tokens"], settings["seed"], settings["temperature"], notices) == (20, -3, 0.8, [])
    assert read_settings(SERVED, SERVED.models["tiny"], "ab", GOOD) == ({}, [])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"model": "nowhere", "sha256": "c" * 16},
            "a model that is not served here: 'nowhere'. Available: tiny, other",
        ),
        ({"sha256": "c" * 16}, "tiny has other weights here"),
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
def test_what_is_wrong_is_said(changes: dict[str, str], said: str) -> None:
    with pytest.raises(BadLink) as error:
        read_link(SERVED, GOOD | changes)
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
def test_settings_that_cannot_be_used(changes: dict[str, str], said: str) -> None:
    settings, (notice,) = read_settings(SERVED, SERVED.models["tiny"], "ab", SETTINGS | changes)
    assert settings == {} and said in notice
