"""The OpenAPI document of /v1. The routes read their bodies themselves, so it is put together here."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from .schema import AttentionRequest, CompletionRequest

JSON, BINARY, EVENTS = "application/json", "application/octet-stream", "text/event-stream"
REFUSALS = {
    "400": "Something in the body cannot be used; `param` names it.",
    "404": "There is no such model.",
    "413": "The body is too large.",
    "429": "Too many requests are waiting; `Retry-After` says when to come again.",
    "500": "The server or the model failed.",
    "503": "The models are still loading, or the server is closing.",
}


class Error(BaseModel):
    message: str
    type: str
    param: str | None
    code: str | None


class ErrorAnswer(BaseModel):
    error: Error


class Logprobs(BaseModel):
    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None]
    text_offset: list[int]


class CompletionChoice(BaseModel):
    text: str
    index: int
    logprobs: Logprobs | None
    finish_reason: str | None


class Usage(BaseModel):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class CompletionAnswer(BaseModel):
    id: str
    object: str
    created: int
    model: str
    system_fingerprint: str | None
    choices: list[CompletionChoice]
    usage: Usage


class AnswerToken(BaseModel):
    id: int
    text: str


class AttentionAnswer(BaseModel):
    model: str
    tokens: list[AnswerToken]
    layers: list[int]
    heads: list[int]
    attention: list[list[list[list[float]]]]


SCHEMAS: tuple[type[BaseModel], ...] = (
    CompletionRequest,
    AttentionRequest,
    ErrorAnswer,
    CompletionAnswer,
    AttentionAnswer,
)


def document(app: FastAPI) -> dict[str, Any]:
    """The routes with the bodies that they take and give."""
    found = get_openapi(title="Headscope", version="1", routes=app.routes)
    _, definitions = models_json_schema(
        [(schema, "validation") for schema in SCHEMAS], ref_template="#/components/schemas/{model}"
    )
    found["components"] = {"schemas": definitions["$defs"]}
    found["servers"] = [{"url": "/v1"}]
    bodies: dict[str, tuple[type[BaseModel], dict[str, Any]]] = {
        "/completions": (CompletionRequest, {JSON: content(CompletionAnswer), EVENTS: {"schema": {"type": "string"}}}),
        "/attention": (
            AttentionRequest,
            {JSON: content(AttentionAnswer), BINARY: {"schema": {"type": "string", "format": "binary"}}},
        ),
    }
    for path, (schema, answers) in bodies.items():
        operation = found["paths"][path]["post"]
        operation["requestBody"] = {"required": True, "content": {JSON: content(schema)}}
        operation["responses"]["200"] = {"description": "The answer.", "content": answers}
    for path, operations in found["paths"].items():
        for operation in operations.values():
            operation["responses"].pop("422", None)
            for status, description in REFUSALS.items():
                if path in bodies or status == "404":
                    operation["responses"][status] = {
                        "description": description,
                        "content": {JSON: content(ErrorAnswer)},
                    }
    return found


def content(schema: type[BaseModel]) -> dict[str, Any]:
    return {"schema": {"$ref": f"#/components/schemas/{schema.__name__}"}}
