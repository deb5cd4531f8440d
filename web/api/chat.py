"""/v1/chat/completions: turn a conversation into a prompt, and the generated text into OpenAI's answer."""

import itertools
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from model import InputError, LoadedModel

from ..serving.chat_templates import Templates
from ..serving.conversation import SPEAKERS, check_conversation_length, prompt_ids, render
from ..settings import Limits
from .completions import Choice, Completion
from .schema import ChatRequest, CompletionRequest, as_conversation

# A model's answer ends when it starts to write the next turn of a transcript.
ENDS_OF_TURN = tuple(f"\n{speaker}:" for speaker in dict.fromkeys(SPEAKERS.values()))


class WrittenMessage(Choice):
    """One answer, whose log-probabilities are in the chat API's form."""

    def place(self, token_id: int, _text: str, logprob: float | None, top: dict[int, float] | None) -> Any:
        likeliest = sorted((top or {}).items(), key=lambda each: -each[1])
        return self.entry(token_id, logprob) | {"top_logprobs": list(itertools.starmap(self.entry, likeliest))}

    def entry(self, token_id: int, logprob: float | None) -> dict[str, object]:
        raw = self.loaded.tokenizer.token_bytes(token_id)
        return {"token": self.token(token_id), "logprob": logprob, "bytes": list(raw)}

    def logprobs(self, shown: Sequence[tuple[int, Any]]) -> dict[str, Any]:
        return {"content": [place for _, place in shown]}


class ChatCompletion(Completion):
    """One call, answered by a completion of the conversation. Raises ``InputError`` for invalid input."""

    kinds = ("chat.completion", "chat.completion.chunk")
    id_prefix = "chatcmpl-"
    choice_class = WrittenMessage

    def __init__(self, loaded: LoadedModel, asked: ChatRequest, limits: Limits, prompt: str) -> None:
        self.own_stop = () if loaded.chat_template else ENDS_OF_TURN
        super().__init__(loaded, as_completion(loaded, asked, limits, prompt), limits)
        self.begun: set[int] = set()

    def as_answer(self, part: dict[str, Any]) -> dict[str, object]:
        message = {"role": "assistant", "content": part["text"], "refusal": None}
        return others(part) | {"message": message}

    def as_chunk(self, part: dict[str, Any]) -> dict[str, object]:
        is_first = part["index"] not in self.begun
        self.begun.add(part["index"])
        speaker = {"role": "assistant"} if is_first else {}
        return others(part) | {"delta": speaker | {"content": part["text"]}}


def others(part: Mapping[str, Any]) -> dict[str, object]:
    """The fields of a choice other than its text."""
    return {name: value for name, value in part.items() if name != "text"}


async def answer_conversation(
    templates: Templates, client: Hashable, loaded: LoadedModel, asked: ChatRequest, limits: Limits
) -> ChatCompletion:
    """The completion that answers a conversation. Raises ``InputError`` for invalid input."""
    check_conversation(asked, limits)
    options = asked.chat_template_kwargs
    prompt = await render(templates, client, loaded, as_conversation(asked.messages), template_options=options)
    return ChatCompletion(loaded, asked, limits, prompt)


def check_conversation(asked: ChatRequest, limits: Limits) -> None:
    """Raise ``InputError`` for a conversation that no model could answer."""
    if asked.top_logprobs and not asked.logprobs:
        raise InputError("top_logprobs", "top_logprobs requires logprobs: true.")
    check_conversation_length(as_conversation(asked.messages), limits)


def as_completion(loaded: LoadedModel, asked: ChatRequest, limits: Limits, prompt: str) -> CompletionRequest:
    """The body of the completion that answers a conversation; ``prompt`` was made from its messages."""
    is_open = asked.max_tokens is None and asked.max_completion_tokens is None
    try:
        ids = loaded.parse_prompt(prompt_ids(loaded, prompt))
    except InputError as error:
        raise renamed(error) from None
    given = {name: getattr(asked, name) for name in CompletionRequest.model_fields.keys() & asked.model_fields_set}
    own = {
        "prompt": ids,
        "max_tokens": limits.max_new_tokens if is_open else asked.max_tokens,
        "logprobs": (asked.top_logprobs or 0) if asked.logprobs else None,
    }
    completion: CompletionRequest = CompletionRequest.model_construct(**given | own)
    return completion


def renamed(error: InputError) -> InputError:
    """An error about the prompt, renamed to be about the messages that the prompt was made from."""
    return error.about("messages") if error.field == "prompt" else error
