"""The OpenAPI document is true: what it forbids is refused, and every answer is as it says."""

import json
from typing import Any

import httpx
import jsonschema
import pytest
from conftest import Server
from hypothesis import HealthCheck, given, settings
from test_api_errors import bodies

from web.api.schema import AttentionRequest, CompletionRequest


@pytest.fixture(scope="module")
def document(server: Server) -> Any:
    return httpx.get(f"{server.url}/v1/openapi.json").json()


def validator(document: Any, schema: Any) -> jsonschema.Draft202012Validator:
    """Of a schema in the document, whose references lead into it."""
    whole = {"components": document["components"], **schema}
    return jsonschema.Draft202012Validator(whole)


def check_answer(document: Any, path: str, method: str, answer: httpx.Response) -> None:
    documented = document["paths"][path][method]["responses"]
    assert str(answer.status_code) in documented, (answer.status_code, answer.text[:300])
    kind = answer.headers["content-type"].split(";")[0]
    assert kind in documented[str(answer.status_code)]["content"]
    schema = documented[str(answer.status_code)]["content"][kind].get("schema")
    if kind == "application/json" and schema:
        validator(document, schema).validate(answer.json())


def test_every_route_and_every_reference(document: Any) -> None:
    assert set(document["paths"]) == {"/models", "/models/{model}", "/completions", "/attention"}
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    completion = document["components"]["schemas"]["CompletionRequest"]
    assert completion["additionalProperties"] is False and completion["required"] == ["prompt"]
    named = "model prompt max_tokens temperature top_p n stream stream_options stop seed logprobs echo user"
    more = "presence_penalty frequency_penalty logit_bias top_k min_p repetition_penalty head_mask context_shift"
    assert {*named.split(), *more.split()} <= set(completion["properties"])


def test_models(server: Server, document: Any) -> None:
    check_answer(document, "/models", "get", httpx.get(f"{server.url}/v1/models"))
    for name in ("tiny", "nobody"):
        check_answer(document, "/models/{model}", "get", httpx.get(f"{server.url}/v1/models/{name}"))


@pytest.mark.slow
@pytest.mark.parametrize(("path", "schema"), [("/completions", CompletionRequest), ("/attention", AttentionRequest)])
def test_what_the_document_forbids_is_refused(server: Server, document: Any, path: str, schema: Any) -> None:
    described = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    allowed = validator(document, described)
    with httpx.Client(timeout=60) as client:

        @settings(max_examples=500, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(bodies(schema))
        def ask(body: Any) -> None:
            content = json.dumps(body)
            answer = client.post(f"{server.url}/v1{path}", content=content)
            check_answer(document, path, "post", answer)
            if not allowed.is_valid(json.loads(content)):
                assert answer.status_code == 400

        ask()
