"""What the OpenAPI document of /v1 says beyond what FastAPI reads off the routes."""

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from .lens.questions import QUESTIONS, Question
from .schema import AttentionRequest, ChatRequest, CompletionRequest, EmbeddingsRequest

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


class ChatChoice(BaseModel):
    index: int
    message: ChatMessage
    logprobs: ChatLogprobs | None
    finish_reason: str | None


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


class AnswerToken(BaseModel):
    id: int
    text: str


class AttentionAnswer(BaseModel):
    model: str
    tokens: list[AnswerToken]
    layers: list[int]
    heads: list[int]
    attention: list[list[list[list[float]]]]


def refusal(description: str) -> dict[str, object]:
    return {"model": ErrorAnswer, "description": description}


Responses = dict[int | str, dict[str, object]]  # as FastAPI takes them

NOT_FOUND: Responses = {404: refusal("There is no such model.")}
REFUSALS: Responses = NOT_FOUND | {
    400: refusal("Something in the body cannot be used; `param` names it."),
    413: refusal("The body is too large."),
    429: refusal("Too many requests are waiting; `Retry-After` says when to try again."),
    500: refusal("The server or the model failed."),
    503: refusal("The models are still loading, or the server is shutting down."),
}
TEXT = {"text/event-stream": {"schema": {"type": "string"}}}
FILE = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
COMPLETION: Responses = {200: {"model": CompletionAnswer, "content": TEXT}, **REFUSALS}
CHAT: Responses = {200: {"model": ChatAnswer, "content": TEXT}, **REFUSALS}
EMBEDDINGS: Responses = {200: {"model": EmbeddingsAnswer}, **REFUSALS}
ATTENTION: Responses = {200: {"model": AttentionAnswer, "content": FILE}, **REFUSALS}

# The routes read these bodies themselves, since a plain `curl -d` does not say that it sends JSON.
BODIES: dict[str, type[BaseModel]] = {
    "/completions": CompletionRequest,
    "/chat/completions": ChatRequest,
    "/embeddings": EmbeddingsRequest,
    "/attention": AttentionRequest,
    **{question.path: question.body for question in QUESTIONS if question.method == "POST"},
}
QUERIES: dict[str, type[BaseModel]] = {
    question.path: question.body for question in QUESTIONS if question.method == "GET"
}


def question_responses(question: Question) -> Responses:
    return {200: {"model": question.answer, "content": TEXT}, **REFUSALS}


def document(app: FastAPI) -> dict[str, object]:
    """The routes, with the bodies that they read themselves."""
    found = get_openapi(title="Headscope", version="1", routes=app.routes, servers=[{"url": "/v1"}])
    schemas, definitions = models_json_schema([(body, "validation") for body in BODIES.values()], ref_template=REF)
    components = found["components"]["schemas"] | definitions["$defs"]
    for path, body in BODIES.items():
        content = {"application/json": {"schema": schemas[body, "validation"]}}
        found["paths"][path]["post"]["requestBody"] = {"required": True, "content": content}
    for path, body in QUERIES.items():
        properties = body.model_json_schema()["properties"]
        found["paths"][path]["get"]["parameters"] = [
            {"name": name, "in": "query", "required": False, "schema": schema} for name, schema in properties.items()
        ]
    for operations in found["paths"].values():
        for operation in operations.values():
            operation["responses"].pop("422", None)  # bad input is 400 here
    for unused in ("HTTPValidationError", "ValidationError"):
        components.pop(unused, None)
    found["components"] = {"schemas": components}
    return found
