"""Pointers: descriptions of a run that tell the browser what to fetch."""

import asyncio
from typing import Any

from ..runs.openings import CannotWrite
from ..runs.run import Run
from ..runs.store import RunWriter
from ..services import Services
from ..serving.generation import Generation
from ..serving.inputs import settings_of
from .page_text import PageText

READ_ALONG = "Another engine writes this text; every number comes from {}, which reads it on this server."


def pointer(run: Run, state: str, settings: dict[str, object]) -> dict[str, object]:
    """A pointer: the progress of ``run``, the shape of its model, and the ``settings`` it was written with."""
    config = run.loaded.config
    special = sorted(set(run.ids) & set(run.loaded.tokenizer.special_tokens.values()))
    return {
        "run": run.id,
        "state": state,
        "tokens": len(run.ids),
        "rows": run.recording.n_rows,
        "rate": round(run.tokens_per_second, 1),
        "n_prompt": run.n_prompt,
        "earlier": run.earlier,
        "before": run.loaded.tokenizer.text_before(run.ids),
        "model": run.loaded.name,
        "sha256": run.loaded.sha256,
        "n_layer": config.n_layer,
        "n_head": config.n_head,
        "n_kv_head": config.n_kv_head,
        "rotary": config.rotary is not None,
        "qk_norm": config.qk_norm,
        "context_length": config.context_length,
        "settings": settings,
        "head_mask": None if run.head_mask is None else run.head_mask.tolist(),
        **({"windows": config.windows} if config.windows else {}),
        **({"special": special} if special else {}),
    }


async def opening_pointer(services: Services, name: str | None) -> dict[str, object]:
    """A pointer to the text that the page shows before this visitor has written anything with the model ``name``."""
    nothing: dict[str, object] = {"state": "none", "notices": services.served.problems()}
    if name not in services.served.models:
        return nothing
    try:
        opening, run = await asyncio.to_thread(services.openings.get, name)
    except CannotWrite:
        return nothing | {"notices": services.served.problems()}
    suggested_heads = [each._asdict() for each in opening.suggested_heads]
    head = opening.head if opening.is_declared else services.snapshots.formed_head(name) or opening.head
    more = {"head": head, "suggested_heads": suggested_heads, "ids": opening.ids}
    return pointer(run, "opening", opening.settings) | more


class Pointers:
    """The pointers to a text that is being written, each with what the one before it lacked."""

    def __init__(
        self, services: Services, text: PageText, generation: Generation, writer: RunWriter, is_remote: bool
    ) -> None:
        self.services, self.text, self.generation, self.writer = services, text, generation, writer
        self.settings, self.sent, self.first = settings_of(text.request, text.prompt), SentTokens(), writer.run
        self.more: dict[str, Any] = {"branch": text.branch} if text.branch else {}
        self.more |= {"note": READ_ALONG.format(text.loaded.name)} if is_remote else {}

    def in_state(self, state: str) -> dict[str, Any]:
        current = self.writer.run
        tokens = self.sent.take(current)
        # A context shift drops messages: what is left is no conversation.
        chat = {"chat": self.text.chat} if self.text.chat and current is self.first else {}
        # The writer may continue meanwhile: the new tokens end where the pointer says that the text does.
        return pointer(current, state, self.settings) | {
            "written": current.n_written(len(self.text.request.prompt)),
            "new": tokens,
            "tokens": self.sent.count,
            "at": self.generation.newest_at,
            "training": self.services.is_training.is_set(),
            **chat,
            **self.more,
        }


class SentTokens:
    """Keeps track of the tokens of a text that the page has been sent."""

    def __init__(self) -> None:
        self.run_id, self.count = "", 0

    def take(self, run: Run) -> list[dict[str, Any]]:
        """The tokens of ``run`` since the last call; all of them if it is a different run."""
        start = self.count if run.id == self.run_id else 0
        stop = len(run.ids)  # the writer may continue meanwhile
        self.run_id, self.count = run.id, stop
        tokens = run.loaded.text_tokens(run.ids[:stop], start)
        logprobs = run.logprobs[start:stop]
        return [
            token._asdict() | ({"bytes": token.byte_text} if token.byte_text else {}) | {"logprob": logprob}
            for token, logprob in zip(tokens, logprobs, strict=True)
        ]
