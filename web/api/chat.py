"""/v1/chat/completions: turn a conversation into a prompt, and the generated text into OpenAI's answer."""

import itertools
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from model import InputError, LoadedModel

from ..serving.chat_templates import Templates
from ..serving.conversation import SPEAKERS, check_conversation_length, prompt_ids, render
from ..settings import Limits
from .completions import Completion
from .schema import ChatRequest, CompletionRequest, as_conversation

# A model's answer ends when it starts to write the next turn of a transcript.
ENDS_OF_TURN = tuple(f"\n{speaker}:" for speaker in dict.fromkeys(SPEAKERS.values()))


class ChatCompletion(Completion):
    """One call, answered by a completion of the conversation. Raises ``InputError`` for invalid input."""

    kinds = ("chat.completion", "chat.completion.chunk")
    id_prefix = "chatcmpl-"

    def __init__(self, loaded: LoadedModel, asked: ChatRequest, limits: Limits, prompt: str) -> None:
        super().__init__(loaded, as_completion(loaded, asked, limits, prompt), limits)
        self.with_logprobs = bool(asked.logprobs)
        self.n_top = asked.top_logprobs or 0
        self.begun: set[int] = set()

    def as_answer(self, part: dict[str, Any]) -> dict[str, object]:
        message = {"role": "assistant", "content": part["text"], "refusal": None}
        return self.choice(part) | {"message": message}

    def as_chunk(self, part: dict[str, Any]) -> dict[str, object]:
        is_first = part["index"] not in self.begun
        self.begun.add(part["index"])
        speaker = {"role": "assistant"} if is_first else {}
        return self.choice(part) | {"delta": speaker | {"content": part["text"]}}

    def choice(self, part: dict[str, Any]) -> dict[str, object]:
        """The fields of a choice other than its text."""
        logprobs = {"content": self.token_logprobs(part["logprobs"])} if self.with_logprobs else None
        cut_off = {"cut_off_by": part["cut_off_by"]} if "cut_off_by" in part else {}
        return {"index": part["index"], "logprobs": logprobs, "finish_reason": part["finish_reason"]} | cut_off

    def token_logprobs(self, places: Mapping[str, Sequence[Any]]) -> list[dict[str, object]]:
        """The tokens of an answer in the chat API's form, each with its bytes and its most probable alternatives."""
        shown = zip(places["tokens"], places["token_logprobs"], places["top_logprobs"], strict=True)
        answer = []
        for token, logprob, tops in shown:
            likeliest = sorted(tops.items(), key=lambda each: -each[1])[: self.n_top]
            answer.append(
                token_entry(token, logprob) | {"top_logprobs": list(itertools.starmap(token_entry, likeliest))}
            )
        return answer


def token_entry(token: str, logprob: float) -> dict[str, object]:
    if token.startswith("bytes:\\x"):
        raw = bytes.fromhex(token.removeprefix("bytes:").replace("\\x", ""))
    else:
        raw = token.encode()
    return {"token": token, "logprob": logprob, "bytes": list(raw)}


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
    if asked.top_logprobs is not None and not asked.logprobs:
        raise InputError("top_logprobs", "top_logprobs requires logprobs: true.")
    n_stop = len(asked.stop) if isinstance(asked.stop, list) else 0
    if n_stop > limits.max_stop:
        raise InputError("stop", f"stop has {n_stop} strings; at most {limits.max_stop} are accepted.")
    check_conversation_length(as_conversation(asked.messages), limits)


def as_completion(loaded: LoadedModel, asked: ChatRequest, limits: Limits, prompt: str) -> CompletionRequest:
    """The body of the completion that answers a conversation; ``prompt`` was made from its messages."""
    stop = [asked.stop] if isinstance(asked.stop, str) else list(asked.stop or [])
    is_open = asked.max_tokens is None and asked.max_completion_tokens is None
    try:
        ids = loaded.parse_prompt(prompt_ids(loaded, prompt))
    except InputError as error:
        raise renamed(error) from None
    given = {name: getattr(asked, name) for name in CompletionRequest.model_fields.keys() & asked.model_fields_set}
    own = {
        "prompt": ids,
        "max_tokens": limits.max_new_tokens if is_open else asked.max_tokens,
        "stop": stop if loaded.chat_template else [*stop, *ENDS_OF_TURN],
        "logprobs": (asked.top_logprobs or 0) if asked.logprobs else None,
    }
    completion: CompletionRequest = CompletionRequest.model_construct(**given | own)
    return completion


def renamed(error: InputError) -> InputError:
    """An error about the prompt, renamed to be about the messages that the prompt was made from."""
    return InputError("messages", str(error), error.code) if error.field == "prompt" else error
