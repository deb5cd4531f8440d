"""The parts of /v1's OpenAPI document that FastAPI cannot derive from the routes."""

from collections.abc import Mapping
from typing import Any, Literal

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, Field
from pydantic.json_schema import models_json_schema

from ..ask.answers import NamedToken
from ..serving.served_models import TOKEN_HEADER
from ..serving.server_sent_events import EVENT_STREAM
from ..settings import Limits
from .completions import most_choices
from .schema import (
    ActivationsRequest,
    AttentionRequest,
    ChatRequest,
    CompletionRequest,
    DetokenizeRequest,
    EmbeddingsRequest,
    TokenizeRequest,
)

REF = "#/components/schemas/{model}"


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


class Ending(BaseModel):
    finish_reason: Literal["stop", "length"] | None
    cut_off_by: Literal["deadline"] | None = Field(
        None,
        description="Present if the text reached the server's time limit; `finish_reason` is then `length`.",
    )


class CompletionChoice(Ending):
    text: str
    index: int
    logprobs: Logprobs | None


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


class ChatMessage(BaseModel):
    role: str
    content: str
    refusal: str | None


class ChatToken(BaseModel):
    token: str
    logprob: float
    bytes: list[int]


class ChatTokenWithTops(ChatToken):
    top_logprobs: list[ChatToken]


class ChatLogprobs(BaseModel):
    content: list[ChatTokenWithTops]


class ChatChoice(Ending):
    index: int
    message: ChatMessage
    logprobs: ChatLogprobs | None


class ChatAnswer(BaseModel):
    id: str
    object: str
    created: int
    model: str
    system_fingerprint: str | None
    choices: list[ChatChoice]
    usage: Usage


class Embedding(BaseModel):
    object: str
    index: int
    embedding: list[float] | str


class EmbeddingsUsage(BaseModel):
    prompt_tokens: int
    total_tokens: int


class EmbeddingsAnswer(BaseModel):
    object: str
    data: list[Embedding]
    model: str
    usage: EmbeddingsUsage


class AttentionAnswer(BaseModel):
    model: str
    tokens: list[NamedToken]
    layers: list[int]
    heads: list[int]
    attention: list[list[list[list[float]]]]


class TokenizeAnswer(BaseModel):
    count: int
    max_model_len: int
    tokens: list[int]
    token_strs: list[str] | None


class DetokenizeAnswer(BaseModel):
    prompt: str


def refusal(description: str) -> dict[str, object]:
    return {"model": ErrorAnswer, "description": description}


Responses = dict[int | str, dict[str, object]]  # in FastAPI's form

NO_KEY: Responses = {
    401: refusal("The API key that the server requires is missing or wrong, or no model has the token that was sent.")
}
NOT_FOUND: Responses = NO_KEY | {404: refusal("There is no such model.")}
REFUSALS: Responses = NOT_FOUND | {
    400: refusal("A field of the body is invalid; `param` names it."),
    413: refusal("The body is too large."),
    415: refusal("The body is compressed."),
    429: refusal("Too many requests are waiting; `Retry-After` says when to try again."),
    500: refusal("The server or the model failed."),
    503: refusal("The models are still loading, or the server is shutting down."),
}
TEXT: dict[str, object] = {EVENT_STREAM: {}}
FILE = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
COMPLETION: Responses = {200: {"model": CompletionAnswer, "content": TEXT}, **REFUSALS}
CHAT: Responses = {200: {"model": ChatAnswer, "content": TEXT}, **REFUSALS}
EMBEDDINGS: Responses = {200: {"model": EmbeddingsAnswer}, **REFUSALS}
TOKENIZE: Responses = {200: {"model": TokenizeAnswer}, **REFUSALS}
DETOKENIZE: Responses = {200: {"model": DetokenizeAnswer}, **REFUSALS}
ACTIVATIONS: Responses = {200: {"content": FILE}, **REFUSALS}
ATTENTION: Responses = {200: {"model": AttentionAnswer, "content": FILE}, **REFUSALS}

# The routes parse these bodies themselves, since a plain `curl -d` does not declare its content as JSON.
BODIES: dict[str, type[BaseModel]] = {
    "/completions": CompletionRequest,
    "/chat/completions": ChatRequest,
    "/embeddings": EmbeddingsRequest,
    "/attention": AttentionRequest,
    "/activations": ActivationsRequest,
    "/tokenize": TokenizeRequest,
    "/detokenize": DetokenizeRequest,
}


def document(
    app: FastAPI,
    limits: Limits,
    posted: Mapping[str, type[BaseModel]],
    queries: Mapping[str, type[BaseModel]],
    *,
    root_path: str = "",
    with_key: bool = False,
) -> dict[str, object]:
    """The OpenAPI document. ``posted`` and ``queries`` are the bodies and queries of Ask, which its routes parse."""
    bodies = {**BODIES, **posted}
    found = get_openapi(title="Headscope", version="1", routes=app.routes, servers=[{"url": f"{root_path}/v1"}])
    schemas, definitions = models_json_schema([(body, "validation") for body in bodies.values()], ref_template=REF)
    components = found["components"]["schemas"] | definitions["$defs"]
    for writing in (CompletionRequest, ChatRequest):
        bound_writing(components[writing.__name__], limits)
    for name in ("Strings", "TokenIdLists"):
        components[name]["maxItems"] = limits.max_choices
    for path, body in bodies.items():
        content = {"application/json": {"schema": schemas[body, "validation"]}}
        found["paths"][path]["post"]["requestBody"] = {"required": True, "content": content}
    for path, body in queries.items():
        schema = body.model_json_schema()
        found["paths"][path]["get"]["parameters"] = [
            {"name": name, "in": "query", "required": name in schema.get("required", ()), "schema": field}
            for name, field in schema["properties"].items()
        ]
    for operations in found["paths"].values():
        for operation in operations.values():
            operation["responses"].pop("422", None)  # invalid input gets 400 here
    for unused in ("HTTPValidationError", "ValidationError"):
        components.pop(unused, None)
    token = {"type": "apiKey", "in": "header", "name": TOKEN_HEADER, "description": "Of a model trained on the page."}
    schemes = {"key": {"type": "http", "scheme": "bearer"}, "model_token": token}
    found["components"] = {"schemas": components, "securitySchemes": schemes}
    with_token: list[dict[str, list[str]]] = [{"key": []}, {"key": [], "model_token": []}]
    found["security"] = with_token if with_key else [{}, {"model_token": []}, *with_token]
    return found


def bound_writing(schema: dict[str, Any], limits: Limits) -> None:
    """Add this server's limits to the schema of a completion's body."""
    properties = schema["properties"]
    for name in ("max_tokens", "max_completion_tokens"):
        variant(properties[name], "integer")["maximum"] = limits.max_new_tokens
    variant(properties["n"], "integer")["maximum"] = most_choices(limits)
    for name in ("stop", "stop_token_ids"):
        next(each for each in properties[name]["anyOf"] if "$ref" in each)["maxItems"] = limits.max_stop
    if "prompt" in properties:
        variant(properties["prompt"], "string")["maxLength"] = limits.max_prompt_characters


def variant(schema: dict[str, Any], kind: str) -> dict[str, Any]:
    """The alternative of a field's schema that has this type."""
    alternative: dict[str, Any] = next(each for each in schema["anyOf"] if each.get("type") == kind)
    return alternative
