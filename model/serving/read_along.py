"""Reading a text that another engine writes, with the same events as if it had been written here."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ..generate import FinishReason, RecordedTensors, Step
from ..loaded import LoadedModel
from ..modules.cache import KVCache, attention_dtype
from ..sampling import token_logprobs, top_logprobs
from ..tokenizer.streaming import TokenStream
from .sequence import PromptPart, TextSequence

READ_AT_ONCE = 64  # tokens per pass, so that other texts need not wait long for theirs


class ReadAlong:
    """Reads a text as it arrives, each token once with a cache, and reports it to the text's listener.

    The text after the prompt is tokenized here, separately from the prompt: its tokens join to exactly the received
    text, but may differ from those that the other engine drew. If neither log-probabilities nor attention weights were
    requested, the text is tokenized but not read.
    """

    def __init__(self, loaded: LoadedModel, text: TextSequence) -> None:
        asked, weight = text.request, loaded.gpt.wte.weight
        self.loaded, self.text = loaded, text
        self.cache: KVCache | None = None
        if asked.record or asked.logprobs or asked.prompt_logprobs:
            self.cache = KVCache(loaded.config, dtype=attention_dtype(weight), device=weight.device)
        self.tokens = TokenStream(loaded.tokenizer)
        self.unread = [] if self.cache is None else list(asked.prompt)
        self.behind: Tensor | None = None  # the logits (vocab_size,) after the last token read
        self.reason: FinishReason | None = None  # why the text ended; later text is ignored

    @property
    def n_read(self) -> int:
        """How many tokens the model has read."""
        return 0 if self.cache is None else self.cache.length

    @property
    def is_behind(self) -> bool:
        """Whether there is something to read."""
        return bool(self.unread) and self.reason is None

    def take(self, text: str) -> None:
        """Add more of the text. Raises ``UnknownCharacters``."""
        self.unread += self.tokens.push(text)

    def finish(self) -> None:
        """Mark the text as complete."""
        self.unread += self.tokens.flush()

    def advance(self) -> None:
        """Read and report the next tokens, at most ``READ_AT_ONCE``."""
        n_unread_prompt = 0 if self.cache is None else self.text.n_given - self.cache.length
        n = min(READ_AT_ONCE, n_unread_prompt) if n_unread_prompt > 0 else READ_AT_ONCE
        ids, self.unread = self.unread[:n], self.unread[n:]
        if n_unread_prompt > 0:
            self.read_prompt(ids)
        elif self.cache is None:
            self.report(ids, [None] * len(ids))
        else:
            self.read_on(ids, self.cache)

    def read_prompt(self, ids: list[int]) -> None:
        text = self.text
        logits, attention = self.read(ids)
        text.plan(len(ids))
        if text.reports_prompt:
            text.report_prompt(logits, attention)
        text.advance()
        self.behind = logits[-1].clone()

    def read_on(self, ids: list[int], cache: KVCache) -> None:
        """Report the next tokens of the text, and then the rows of attention weights that were read with them."""
        start = cache.length
        readable = ids[: cache.capacity - start]
        if not readable:  # the context is full: the last token has no row
            self.report(ids, [self.behind])
            return
        logits, attention = self.read(readable)
        n_reported = self.report(ids, [self.behind, *logits])
        if attention is not None:
            rows = attention[:, :, :n_reported, : start + n_reported]
            self.text.report(PromptPart(start, rows, logprobs=[], top_logprobs=[]))
        self.behind = logits[-1].clone()

    def report(self, ids: list[int], behind: Sequence[Tensor | None]) -> int:
        """Report tokens, up to one that ends the text, using the logits before each. Returns their number."""
        for n, (token_id, logits) in enumerate(zip(ids, behind, strict=False), 1):
            step = self.step(token_id, logits)
            self.reason = step.finish_reason
            self.text.report(replace(step, finish_reason=None))  # its row follows
            if self.reason:
                return n
        return len(ids)

    def step(self, token_id: int, logits: Tensor | None) -> Step:
        """One token with its probability under this model; ``logits`` ``(vocab_size,)`` are those that predict it."""
        if logits is None:
            return self.text.add(token_id, float("nan"))
        asked = self.text.request
        (logprob,) = token_logprobs(logits[None], [token_id])
        top = top_logprobs(logits[None], asked.n_top_logprobs)[0] if asked.n_top_logprobs else None
        recorded = RecordedTensors(logits.clone()) if asked.record else None
        return self.text.add(token_id, logprob, top_logprobs=top, recorded=recorded)

    @torch.inference_mode()
    def read(self, ids: list[int]) -> tuple[Tensor, Tensor | None]:
        """The logits ``(n, vocab_size)`` after the next tokens, and their attention weights if recorded.

        The weights are ``(n_layer, n_head, n, S)``, with all ``S`` tokens so far as keys.
        """
        layers = range(self.loaded.config.n_layer) if self.text.request.record else ()
        result = self.loaded.gpt(torch.tensor([ids], device=self.loaded.device), cache=self.cache, record=layers)
        attention = torch.stack([result.attention[i][0] for i in layers]).float().cpu() if layers else None
        return result.logits[0].float(), attention
