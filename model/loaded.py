"""A GPT with its vocabulary, ready to write and to be looked into."""

import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from .config import GPTConfig, check_int
from .errors import ContextLengthExceeded, EmptyPrompt, UnknownTokens
from .generate import Draft, Step, generate
from .gpt import GPT
from .layout import write_checkpoint
from .sampling import SamplingSettings, random_generator
from .tokenizer import Tokenizer, token_text
from .trace import Token, Trace, read

MAX_SEED = 2**63 - 1
MAX_HEAD_SCALE = 100
Prompt = str | Sequence[int]
HeadMask = Tensor | Sequence[Sequence[float]]


@dataclass(eq=False)
class LoadedModel:
    """What ``model.load`` returns. ``sha256`` is that of the weights as stored; "" for a model never saved."""

    name: str
    gpt: GPT
    tokenizer: Tokenizer
    bos_token_id: int | None = None
    eos_token_id: int | None = None
    sha256: str = ""

    @property
    def config(self) -> GPTConfig:
        return self.gpt.config

    @property
    def device(self) -> torch.device:
        return self.gpt.wte.weight.device

    @property
    def dtype(self) -> torch.dtype:
        """The precision of its matrix products."""
        return self.gpt.lm_head.weight.dtype

    def generate(
        self,
        prompt: Prompt,
        max_new_tokens: int = 100,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float = 1.0,
        min_p: float = 0.0,
        presence_penalty: float = 0.0,
        frequency_penalty: float = 0.0,
        repetition_penalty: float = 1.0,
        logit_bias: dict[int, float] | None = None,
        stop: Sequence[str] = (),
        seed: int | None = None,
        head_mask: HeadMask | None = None,
        record: bool = False,
    ) -> Iterator[Step]:
        """Continue ``prompt`` (text or token ids) and yield a ``Step`` for each token written.

        The arguments are checked at once, before the first step: ``ValueError`` for a setting, ``PromptError`` for
        the prompt. Without a ``seed`` each call writes something else. ``head_mask`` ``(n_layer, n_head)`` scales each
        head's context vectors; ``record`` keeps the attention weights. It ends at the model's end token, at a stop
        string, after ``max_new_tokens``, or when the context is full; a prompt that fills it gets one token.
        """
        settings = SamplingSettings(
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            presence_penalty=presence_penalty,
            frequency_penalty=frequency_penalty,
            repetition_penalty=repetition_penalty,
            logit_bias={} if logit_bias is None else logit_bias,
        )
        draft = self.draft(prompt, max_new_tokens, settings, stop=stop, seed=seed)
        return generate(self.gpt, draft, head_mask=self.read_head_mask(head_mask), record=record)

    def draft(
        self,
        prompt: Prompt,
        max_new_tokens: int,
        settings: SamplingSettings,
        *,
        stop: Sequence[str] = (),
        seed: int | None = None,
        place: tuple[int, int] = (0, 0),
        context_shift: bool = False,
    ) -> Draft:
        """A text to be written, checked: raises ``ValueError`` for a setting, ``PromptError`` for the prompt.

        ``place`` is which prompt of a request it is and which choice for it: each has a random generator of its own.
        With ``context_shift`` it may become longer than the context.
        """
        check_int("max_new_tokens", max_new_tokens, 2**31)
        stop = list(stop) if isinstance(stop, Iterable) and not isinstance(stop, str) else [stop]
        for string in stop:
            if not isinstance(string, str) or not string:
                raise ValueError(f"stop must hold strings of at least one character, found {string!r}")
        if seed is None:
            seed = secrets.randbits(32)
        check_int("seed", seed, MAX_SEED, least=-MAX_SEED)
        last = self.config.vocab_size - 1
        check_int("the largest token id in logit_bias", max(settings.logit_bias, default=0), last, least=0)
        ids = self.read_prompt(prompt)
        if not context_shift:
            max_new_tokens = min(max_new_tokens, self.config.context_length - len(ids) + 1)
        return Draft(
            self.tokenizer,
            ids,
            max_new_tokens=max_new_tokens,
            settings=settings,
            generator=random_generator(seed, *place),
            stop=stop,
            end_token=self.eos_token_id,
        )

    def trace(
        self,
        prompt: Prompt,
        *,
        head_mask: HeadMask | None = None,
        layers: Sequence[int] | None = None,
        heads: Sequence[int] | None = None,
    ) -> Trace:
        """Read ``prompt`` (text or token ids) once and record every head, or the ``layers`` and ``heads`` named."""
        ids = self.read_prompt(prompt)
        layers = self.read_choice("layers", layers, self.config.n_layer)
        heads = self.read_choice("heads", heads, self.config.n_head)
        chosen = None if list(heads) == list(range(self.config.n_head)) else heads
        attention, logits = read(self.gpt, ids, head_mask=self.read_head_mask(head_mask), layers=layers, heads=chosen)
        return Trace(self.tokens(ids), attention, logits, tuple(layers), tuple(heads))

    def tokens(self, ids: Sequence[int]) -> list[Token]:
        """``ids`` with their texts."""
        return [Token(token_id, token_text(self.tokenizer, token_id)) for token_id in ids]

    def save(self, folder: str | Path, dtype: torch.dtype | None = None) -> None:
        """Write the checkpoint folder, the weights in ``dtype`` or as they are; a reader never sees half of it.

        Raises ``ValueError`` for a model in int8, whose weights were rounded.
        """
        if self.dtype == torch.int8:
            raise ValueError("a model in int8 cannot be saved, as its weights were rounded: load it in float32")
        write_checkpoint(
            folder,
            self.config,
            self.gpt.state_dict(),
            self.tokenizer,
            bos_token_id=self.bos_token_id,
            eos_token_id=self.eos_token_id,
            dtype=dtype,
        )

    def read_prompt(self, prompt: Prompt) -> list[int]:
        """Token ids of a prompt that the model can read; raises a ``PromptError`` that says why it cannot."""
        ids = self.tokenizer.encode(prompt) if isinstance(prompt, str) else list(prompt)
        if not ids:
            raise EmptyPrompt
        for token_id in ids:
            if type(token_id) is not int or not 0 <= token_id < self.config.vocab_size:
                raise UnknownTokens(token_id, self.config.vocab_size)
        if len(ids) > self.config.context_length:
            raise ContextLengthExceeded(len(ids), self.config.context_length)
        return ids

    def read_head_mask(self, head_mask: HeadMask | None) -> Tensor | None:
        """A head mask as a float32 tensor on the model's device; raises ``ValueError`` for another shape or NaN."""
        if head_mask is None:
            return None
        try:
            mask = torch.as_tensor(head_mask, dtype=torch.float32, device=self.device)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ValueError(f"head_mask must be rows of numbers: {error}") from None
        expected = (self.config.n_layer, self.config.n_head)
        if mask.shape != expected:
            raise ValueError(f"head_mask must have the shape (n_layer, n_head) = {expected}, found {tuple(mask.shape)}")
        if not (mask.abs() <= MAX_HEAD_SCALE).all():  # NaN is not, either
            raise ValueError(f"head_mask must hold numbers from -{MAX_HEAD_SCALE} to {MAX_HEAD_SCALE}")
        return mask

    @staticmethod
    def read_choice(name: str, chosen: Sequence[int] | None, count: int) -> Sequence[int]:
        """The layers or heads asked for; raises ``ValueError`` unless each is one of ``count``, named once."""
        if chosen is None:
            return range(count)
        chosen = list(chosen)
        for index in chosen:
            check_int(name, index, count - 1, least=0)
        if not chosen or len(set(chosen)) != len(chosen):
            raise ValueError(f"{name} must name at least one, each once, found {chosen}")
        return chosen
