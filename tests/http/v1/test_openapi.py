"""The OpenAPI document is as strict as the server, and every answer matches it."""

from typing import Any

import httpx
import jsonschema
import pytest

from helpers.api import Document
from helpers.server import Server
from helpers.siege.fuzz import few, the_document_is_as_strict_as_the_server
from web.api.schema import (
    AttentionRequest,
    ChatRequest,
    CompletionRequest,
    DetokenizeRequest,
    EmbeddingsRequest,
    TokenizeRequest,
)
from web.ask.table import QUESTIONS


@pytest.fixture(scope="module")
def document(server: Server) -> Document:
    return Document(httpx.get(f"{server.url}/v1/openapi.json").json())


def test_document_has_every_route_and_valid_references(document: Document) -> None:
    asked = {question.path for question in QUESTIONS}
    known = {
        "/models",
        "/models/{model}",
        "/completions",
        "/chat/completions",
        "/embeddings",
        "/attention",
        "/activations",
    }
    known |= {"/tokenize", "/detokenize", "/version"}
    assert set(document.content["paths"]) == known | asked
    schemas = document.content["components"]["schemas"]
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    completion = schemas["CompletionRequest"]
    assert completion["additionalProperties"] is False and completion["required"] == ["prompt"]
    named = "model prompt max_tokens temperature top_p n stream stream_options stop seed logprobs echo user"
    more = "presence_penalty frequency_penalty logit_bias top_k min_p repetition_penalty head_mask context_shift"
    assert {*named.split(), *more.split()} <= set(completion["properties"])


def test_models_answers_match_the_document(server: Server, document: Document) -> None:
    document.check_answer("/models", "get", httpx.get(f"{server.url}/v1/models"))
    for name in ("tiny", "nobody"):
        document.check_answer("/models/{model}", "get", httpx.get(f"{server.url}/v1/models/{name}"))


SCHEMAS = [
    ("completions", CompletionRequest),
    ("chat/completions", ChatRequest),
    ("embeddings", EmbeddingsRequest),
    ("attention", AttentionRequest),
    ("tokenize", TokenizeRequest),
    ("detokenize", DetokenizeRequest),
]


@pytest.mark.parametrize(("path", "schema"), SCHEMAS)
def test_document_is_as_strict_as_the_server(server: Server, document: Document, path: str, schema: Any) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        few(the_document_is_as_strict_as_the_server(client, document, path, schema))
