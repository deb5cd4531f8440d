"""The properties of ``helpers.siege.fuzz`` with thousands of examples each."""

from typing import Any

import httpx
import pytest

from helpers.api import Document
from helpers.links import served_under
from helpers.server import Server
from helpers.siege.fuzz import (
    FILES,
    Damaged,
    a_query_that_nobody_wrote,
    any_value_in_any_place,
    any_value_in_the_safetensors_header,
    damaged_bytes,
    ids_survive,
    ids_that_nobody_wrote,
    many,
    still_serves,
    the_document_is_as_strict_as_the_server,
    whatever_comes_in_is_answered,
)
from web.api.schema import AttentionRequest, CompletionRequest

ROUTES = [("completions", CompletionRequest), ("attention", AttentionRequest)]


@pytest.mark.parametrize(("path", "schema"), ROUTES)
def test_mutated_bodies(server: Server, path: str, schema: Any) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        many(whatever_comes_in_is_answered(client, path, schema), n_examples=5_000)
        assert still_serves(client)


@pytest.mark.parametrize(("path", "schema"), ROUTES)
def test_bodies_from_the_openapi_document(server: Server, path: str, schema: Any) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        document = Document(client.get("/v1/openapi.json").json())
        many(the_document_is_as_strict_as_the_server(client, document, path, schema))


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_mutated_checkpoint_values(damaged: Damaged, name: str) -> None:
    many(any_value_in_any_place(damaged, name))


@pytest.mark.parametrize("name", FILES)
def test_damaged_checkpoint_bytes(damaged: Damaged, name: str) -> None:
    many(damaged_bytes(damaged, name))


def test_mutated_safetensors_headers(damaged: Damaged) -> None:
    many(any_value_in_the_safetensors_header(damaged))


def test_mutated_links() -> None:
    many(ids_survive())
    many(ids_that_nobody_wrote())
    many(a_query_that_nobody_wrote(served_under(tiny="a" * 64, other="b" * 64)))
