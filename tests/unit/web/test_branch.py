"""Another continuation, as an event that any client can send."""

from typing import Any

import pytest

from helpers.server import CONTEXT
from model import InputError
from web.page.page_text import parse_branch
from web.services import Services

FIELDS = {"max_new_tokens": 10, "temperature": 0.8, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "seed": 1}


def sent(services: Services, **changes: Any) -> dict[str, Any]:
    loaded = services.served.models["tiny"]
    given = {"of": "x", "model": "tiny", "sha256": loaded.sha256, "ids": [3, 4, 5], "n_prompt": 1, "instead": 7}
    return given | changes


def test_valid_events_are_parsed(services: Services) -> None:
    text = parse_branch(services.served, sent(services), FIELDS)
    loaded = services.served.models["tiny"]
    tokens = [token.text for token in loaded.tokens([5, 7])]
    assert text.branch == {"of": "x", "at": 2, "token": tokens[0], "instead": tokens[1]}
    assert text.prompt == loaded.tokenizer.decode([3])
    whole = sent(services, ids=[1] * CONTEXT, n_prompt=0, instead=None)
    assert len(parse_branch(services.served, whole, FIELDS).request.prompt) == CONTEXT


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sha256": "0" * 64}, "no longer served"),
        ({"sha256": None}, "no longer served"),
        ({"ids": "abc"}, "ids must be a list"),
        ({"ids": [1]}, "2 to 64 tokens"),
        ({"ids": [1] * (CONTEXT + 1)}, "found 65"),
        ({"ids": [1, 10_000]}, "10000"),
        ({"ids": [1, "a"]}, "'a'"),
        ({"ids": [1, True]}, "true"),
        ({"n_prompt": 3}, "n_prompt must be an integer from 0 to 2"),
        ({"n_prompt": -1}, "n_prompt"),
        ({"n_prompt": None}, "n_prompt"),
        ({"instead": 10_000}, "instead"),
        ({"of": "x" * 65}, "of must be"),
        ({"of": {}}, "of must be"),
    ],
)
def test_invalid_events_are_refused(services: Services, change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_branch(services.served, sent(services, **change), FIELDS)


def test_event_without_data_is_refused(services: Services) -> None:
    for data in (None, [], "branch"):
        with pytest.raises(InputError, match="A branch must be an object"):
            parse_branch(services.served, data, FIELDS)
    with pytest.raises(InputError, match="temperature"):
        parse_branch(services.served, sent(services), FIELDS | {"temperature": float("nan")})
