"""A GPT and its tokenizer, ready to generate text and to be inspected."""

import logging
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .checkpoint.conventions import sampling_defaults
from .checkpoint.folder_format import tokens_by_name
from .checkpoint.load import load_checkpoint
from .checkpoint.write import write_checkpoint
from .config import GPTConfig, check_int
from .drawing.drawing import shortened
from .drawing.recorded_pass import read
from .drawing.trace import Trace, TracedBy
from .errors import ContextLengthExceeded, EmptyPrompt, InputError, InvalidValue, NotOneToken, UnknownTokens, counted
from .generate import Continuation, GenerationRequest, GivenToken, Prompt, Step, generate
from .gpt import GPT
from .lens.attribution import attribution
from .lens.composition import composition
from .lens.difference import difference
from .lens.float32 import in_words
from .lens.head_roles import roles, text_roles
from .lens.interventions.circuit import circuit
from .lens.interventions.knockout import knockout, removal
from .lens.interventions.patching import patch, patch_site
from .lens.interventions.paths import patch_paths, paths
from .lens.interventions.role_paths import role_paths
from .lens.interventions.run import activations, run
from .lens.ledger import ledger
from .lens.lens import Lens, of_model, of_text, of_two_texts, of_weights
from .lens.logit_lens import logit_lens
from .lens.neurons import neuron
from .lens.one_head import head
from .lens.passages import passages
from .lens.prompts import over_prompts
from .lens.text_pass import Text, TextPass
from .lens.token_circuits import token_circuit
from .modules.hooks import NO_HOOKS, Hooks
from .points import HookChoice, chosen_hooks
from .sampling import SAMPLING_OPTIONS, SamplingSettings
from .tokenizer import Token, Tokenizer, text_tokens, token_text

log = logging.getLogger(__name__)

MAX_MASK_ROWS = 1_000  # more layers than any model has
MAX_HEAD_SCALE = 100
HeadMask = Tensor | Sequence[Sequence[float]]


def load(source: str | Path, device: str = "auto", dtype: str = "auto") -> "LoadedModel":
    """Load the checkpoint in the folder ``source`` or, if there is none, in a Hub repository, ``USER/NAME[@REVISION]``.

    ``FOLDER@NNNNNN`` loads the weights that training kept after step NNNNNN, ``FOLDER/steps/NNNNNN.safetensors``. A
    file of nanoGPT's weights can be loaded too if its vocabulary is in the same folder. Vocabulary rows without a token
    in the tokenizer keep their logits and probabilities, but are never drawn; a warning gives their number, and
    that of tokens without a row, which no prompt may have. ``device`` is "auto" (cuda if available, else the CPU)
    or a torch device. ``dtype`` is "auto" (float32 up to 50 M weights; above that, bfloat16 if the processor
    supports it), "float32", "bfloat16" or, on a CPU, "int8", which quantizes the weights of the linear layers. No
    code in a file is executed. Raises ``CheckpointError`` if anything is wrong with
    the checkpoint, and ``ValueError`` for an unknown device or dtype.
    """
    loaded = LoadedModel(*load_checkpoint(source, device, dtype))
    if n_rows := len(loaded.ids_without_token):
        rows = counted(n_rows, "row")
        log.warning("%s: %s of the vocabulary without a token will never be drawn", loaded.name, rows)
    return loaded


@dataclass(eq=False, repr=False)
class LoadedModel:
    """A checkpoint in memory: the GPT, its tokenizer and its metadata.

    ``sha256`` is the digest of the stored weights, and ``model_type`` the family that the checkpoint names, or "" for a
    model never saved. ``chat_template`` is the checkpoint's Jinja template, or "". A text ends at the eos token, or at
    one of ``other_end_ids``. ``declared_context`` is the context length in its config, which may be longer than the one
    used; 0 if there is none. ``named_tokens`` are the tokenizer's special tokens by name, such as "bos_token"; None for
    a model never saved. ``generation_config`` is the content of its ``generation_config.json``.
    """

    name: str
    gpt: GPT
    tokenizer: Tokenizer
    bos_token_id: int | None = None
    eos_token_id: int | None = None
    sha256: str = ""
    chat_template: str = ""
    other_end_ids: tuple[int, ...] = ()
    model_type: str = ""
    declared_context: int = 0
    named_tokens: Mapping[str, str] | None = None
    generation_config: Mapping[str, object] = field(default_factory=dict)

    def __repr__(self) -> str:
        config = self.config
        sizes = f"{config.n_layer} layers of {config.n_head} heads, n_embd {config.n_embd}"
        return f"LoadedModel {self.name!r}: {sizes}, {config.vocab_size:,} tokens, context {config.context_length:,}"

    # The questions of Ask. Each is computed in float32 with the weights as they are, and answered by a dataclass with
    # tensors, ``show()`` and ``to_dict()``. Token ids and positions count from 0. All raise ``InputError`` for what the
    # model or the text does not have.
    knockout = of_text(knockout)
    removal = of_text(removal)
    attribution = of_text(attribution)
    head = of_text(head)
    ledger = of_text(ledger)
    logit_lens = of_text(logit_lens)
    text_roles = of_text(text_roles)
    paths = of_text(paths)
    patch = of_two_texts(patch)
    patch_site = of_two_texts(patch_site)
    patch_paths = of_two_texts(patch_paths)
    activations = of_model(activations)
    run = of_model(run)
    difference = of_model(difference)
    passages = of_model(passages)
    neuron = of_model(neuron)
    circuit = of_model(circuit)
    over_prompts = of_model(over_prompts)
    roles = of_model(roles)
    role_paths = of_model(role_paths)
    token_circuit = of_model(token_circuit)
    composition = of_weights(composition)

    @property
    def lens(self) -> Lens:
        """The model as questions read it, in float32 with its weights as they are at this moment."""
        self.own_lens.refresh()
        return self.own_lens

    @property
    def float32(self) -> Lens:
        """The former name of ``lens``."""
        return self.lens

    @cached_property
    def own_lens(self) -> Lens:
        return Lens(self)

    def text_pass(self, text: Text) -> TextPass:
        """A pass over a text in float32, which any function of ``lens`` takes."""
        return self.lens.read(text)

    @property
    def config(self) -> GPTConfig:
        return self.gpt.config

    @cached_property
    def ids_without_token(self) -> tuple[int, ...]:
        """The vocabulary rows without a token in the tokenizer, for example in a vocabulary padded to a round size."""
        return tuple(i for i in range(self.config.vocab_size) if not self.tokenizer.token_bytes(i))

    @property
    def end_token_ids(self) -> tuple[int, ...]:
        """The tokens at which a text ends."""
        return self.other_end_ids if self.eos_token_id is None else (self.eos_token_id, *self.other_end_ids)

    @property
    def template_tokens(self) -> Mapping[str, str]:
        """The special tokens by name that a chat template finds."""
        if self.named_tokens is not None:
            return self.named_tokens
        return tokens_by_name(self.tokenizer, self.bos_token_id, self.eos_token_id)

    @property
    def default_sampling(self) -> dict[str, float]:
        """The sampling settings that the checkpoint recommends, as arguments of ``generate``, which does not use them
        unless it is given them: ``loaded.generate(prompt, **loaded.default_sampling)``.
        """
        return sampling_defaults(self.generation_config)

    @property
    def device(self) -> torch.device:
        return self.gpt.device

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the model's matrix products."""
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
        stop: str | Iterable[str] = (),
        seed: int | None = None,
        head_mask: HeadMask | None = None,
        hooks: HookChoice | None = None,
        record: bool = False,
    ) -> "WrittenText":
        """Continue ``prompt`` (text or token ids) and yield a ``Step`` for each token written.

        The arguments are checked by the call itself, before the first step: ``InputError`` names an invalid argument,
        and ``PromptError`` says what is wrong with the prompt. Without a ``seed``, each call writes a different text.
        ``head_mask`` ``(n_layer, n_head)`` scales each head's context vectors, and ``hooks`` change activations as in
        ``run``: they see the prompt first, then each written token by itself, ``(1, 1, ...)``. ``record`` keeps the
        attention weights, and a notebook draws a cell that ends in the call: the text with every head, and a replay of
        its writing.
        The text ends at the model's end token, at a stop string, after ``max_new_tokens``, or when the context is full;
        a prompt that fills the context is followed by one token.
        """
        several = not isinstance(prompt, str | Tensor | np.ndarray) and len(prompt) > 1
        if several and any(isinstance(each, str | list) for each in prompt):
            raise InputError(
                "prompt", "generate continues one text; BatchWriter(loaded).write(texts) continues several."
            )
        sampling = SamplingSettings(
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            presence_penalty=presence_penalty,
            frequency_penalty=frequency_penalty,
            repetition_penalty=repetition_penalty,
            logit_bias={} if logit_bias is None else logit_bias,
        )
        request = self.request(
            prompt, max_new_tokens, sampling=sampling, stop=stop, seed=seed, head_mask=head_mask, record=record
        )
        return WrittenText(self, request, chosen_hooks(self.config, hooks))

    def request(
        self,
        prompt: Prompt,
        max_new_tokens: int = 100,
        *,
        sampling: SamplingSettings | None = None,
        stop: str | Iterable[str] = (),
        seed: int | None = None,
        head_mask: HeadMask | None = None,
        record: bool = False,
        logprobs: bool = True,
        prompt_logprobs: bool = False,
        n_top_logprobs: int = 0,
        choice: tuple[int, int] = (0, 0),
        context_shift: bool = False,
        stop_token_ids: Iterable[int] = (),
        min_new_tokens: int = 0,
        skip_special_tokens: bool = True,
    ) -> GenerationRequest:
        """A ``GenerationRequest`` checked against this model; the arguments are described there.

        Raises ``InputError`` for an invalid argument and ``PromptError`` for an invalid prompt. A missing ``seed`` is
        drawn. Unless ``context_shift`` is set, the text ends where the context is full.
        """
        sampling = SamplingSettings() if sampling is None else sampling
        request = GenerationRequest(
            prompt=tuple(self.parse_prompt(prompt)),
            max_new_tokens=max_new_tokens,
            sampling=sampling,
            stop=tuple(stop) if isinstance(stop, Iterable) and not isinstance(stop, str) else (stop,),
            seed=secrets.randbits(32) if seed is None else seed,
            never_drawn=self.ids_without_token,
            head_mask=self.parse_head_mask(head_mask),
            record=record,
            logprobs=logprobs,
            prompt_logprobs=prompt_logprobs,
            n_top_logprobs=n_top_logprobs,
            choice=choice,
            context_shift=context_shift,
            stop_token_ids=tuple(stop_token_ids),
            min_new_tokens=min_new_tokens,
            skip_special_tokens=skip_special_tokens,
        )
        if max(sampling.logit_bias, default=0) >= self.config.vocab_size:
            raise self.invalid_bias(max(sampling.logit_bias))
        if not all(type(each) is int and 0 <= each < self.config.vocab_size for each in request.stop_token_ids):
            allowed = f"token ids, integers from 0 to {self.config.vocab_size - 1}"
            raise InvalidValue("stop_token_ids", list(request.stop_token_ids), allowed)
        return request

    def invalid_bias(self, key: object) -> InvalidValue:
        """The error of a bias for ``key``, which is no token id."""
        allowed = f"a map of token ids, integers from 0 to {self.config.vocab_size - 1}, to numbers"
        return InvalidValue("logit_bias", key, allowed)

    def begin(self, request: GenerationRequest) -> Continuation:
        """Start the text of a request."""
        return Continuation(request, self.tokenizer, self.end_token_ids, self.config.context_length)

    def trace(
        self,
        prompt: Prompt,
        *,
        head_mask: HeadMask | None = None,
        layers: Sequence[int] | None = None,
        heads: Sequence[int] | None = None,
        hooks: HookChoice | None = None,
    ) -> Trace:
        """Read ``prompt`` (text or token ids) once and record every head, or the ``layers`` and ``heads`` named.

        Computed in float32, as everything that looks inside a model is. ``hooks`` are those of ``run``.
        """
        chosen = chosen_hooks(self.config, hooks)
        return self.trace_with(self.lens.gpt, prompt, head_mask=head_mask, layers=layers, heads=heads, hooks=chosen)

    def trace_with(
        self,
        gpt: GPT,
        prompt: Prompt,
        *,
        head_mask: HeadMask | None = None,
        layers: Sequence[int] | None = None,
        heads: Sequence[int] | None = None,
        hooks: Hooks = NO_HOOKS,
    ) -> Trace:
        """The same with this model as it is served, or in float32."""
        ids = self.parse_prompt(prompt)
        layers = self.parse_choice("layers", layers, self.config.n_layer)
        heads = self.parse_choice("heads", heads, self.config.n_head)
        chosen = None if list(heads) == list(range(self.config.n_head)) else heads
        mask = self.parse_head_mask(head_mask)
        attention, logits = read(gpt, ids, head_mask=mask, layers=layers, heads=chosen, hooks=hooks)
        traced_by = TracedBy(self.name, self.sha256, self.tokenizer, self.config)
        precision = in_words(gpt.lm_head.weight.dtype, self.gpt)
        return Trace(
            self.text_tokens(ids),
            attention,
            logits,
            tuple(layers),
            tuple(heads),
            traced_by,
            len(ids),
            mask,
            precision=precision,
        )

    @torch.no_grad()
    def embed(self, prompt: Prompt) -> Tensor:
        """The mean over all positions of the last hidden states, after the final layer norm: ``(n_embd,)`` float32."""
        x = self.gpt.embed(torch.tensor([self.parse_prompt(prompt)], device=self.device))
        x = self.gpt.run_blocks(x, lambda block, x: block.attn(x)[0])
        return self.gpt.head_input(x)[0].float().mean(dim=0).cpu()

    def tokens(self, ids: Sequence[int]) -> list[Token]:
        """``ids`` with their texts, each by itself."""
        return [Token(token_id, token_text(self.tokenizer, token_id)) for token_id in ids]

    def text_tokens(self, ids: Sequence[int], start: int = 0) -> list[Token]:
        """The tokens of a text from ``start`` on. A character that several make up stands on the last of them."""
        return text_tokens(self.tokenizer, ids, start)

    def save(self, folder: str | Path, dtype: torch.dtype | None = None) -> None:
        """Write the checkpoint folder atomically, with the weights in ``dtype`` or unchanged.

        Raises ``ValueError`` for a model in int8, whose weights were rounded.
        """
        if self.dtype == torch.int8:
            raise ValueError("a model in int8 cannot be saved, because its weights were rounded: load it in float32")
        write_checkpoint(
            folder,
            self.config,
            self.gpt.state_dict(),
            self.tokenizer,
            bos_token_id=self.bos_token_id,
            eos_token_id=self.eos_token_id,
            dtype=dtype,
            chat_template=self.chat_template,
            other_end_ids=self.other_end_ids,
            named_tokens=self.named_tokens,
            generation_config=self.generation_config,
        )

    def parse_prompt(self, prompt: Prompt, *, noun: str = "prompt") -> list[int]:
        """The token ids of a prompt. Raises a ``PromptError`` that says why the model cannot read it.

        ``noun`` is what the message calls the prompt.
        """
        ids = self.tokenizer.encode_prompt(prompt) if isinstance(prompt, str) else given_ids(prompt)
        if not ids:
            raise EmptyPrompt(noun)
        for token_id in ids:
            if type(token_id) is not int or not 0 <= token_id < self.config.vocab_size:
                raise UnknownTokens(token_id, self.config.vocab_size)
        if len(ids) > self.config.context_length:
            raise ContextLengthExceeded(len(ids), self.config.context_length, noun)
        return ids

    def parse_token(self, token: GivenToken, name: str = "token") -> int:
        """The id of a token given as text, id or tensor of one id. Raises ``InputError`` about ``name``."""
        try:
            given = self.tokenizer.token_of(token) if isinstance(token, str) else as_int(token)
            return self.parse_prompt([given])[0]
        except NotOneToken as error:
            raise NotOneToken(error.pieces, name) from None
        except InputError as error:
            raise InputError(name, f"{name}: {error}", error.code) from None

    def parse_head_mask(self, head_mask: HeadMask | None) -> Tensor | None:
        """A head mask as a float32 tensor on the model's device; raises ``InputError`` for another shape or NaN."""
        if head_mask is None:
            return None
        expected = (self.config.n_layer, self.config.n_head)
        if isinstance(head_mask, list) and len(head_mask) > MAX_MASK_ROWS:  # before it is converted
            found = f"{len(head_mask):,} rows"
            raise InputError(
                "head_mask", f"head_mask must have the shape (n_layer, n_head) = {expected}, found {found}"
            )
        try:
            mask = torch.as_tensor(head_mask, dtype=torch.float32, device=self.device)
        except (TypeError, ValueError, RuntimeError) as error:
            raise InputError("head_mask", f"head_mask must be rows of numbers: {error}") from None
        if mask.shape != expected:
            message = f"head_mask must have the shape (n_layer, n_head) = {expected}, found {tuple(mask.shape)}"
            raise InputError("head_mask", message)
        if not (mask.abs() <= MAX_HEAD_SCALE).all():  # rejects NaN too
            message = f"head_mask must hold numbers from -{MAX_HEAD_SCALE} to {MAX_HEAD_SCALE}"
            raise InputError("head_mask", message)
        return mask

    @staticmethod
    def parse_choice(name: str, chosen: Sequence[int] | None, count: int) -> Sequence[int]:
        """The layers or heads asked for; raises ``InputError`` unless each is one of ``count`` and named only once."""
        if chosen is None:
            return range(count)
        chosen = list(chosen)
        for index in chosen:
            check_int(name, index, count - 1, least=0)
        if not chosen or len(set(chosen)) != len(chosen):
            raise InvalidValue(name, chosen, "at least one index, each named once")
        return chosen


def given_ids(prompt: Sequence[int] | Tensor | NDArray[Any]) -> list[Any]:
    """Token ids as a list: those of a sequence, or of an array or a tensor ``(T,)`` or ``(1, T)``."""
    if isinstance(prompt, Tensor | np.ndarray):
        return prompt.tolist() if prompt.ndim == 1 else prompt[0].tolist() if len(prompt) == 1 else [prompt.shape]
    return list(map(as_int, prompt))


def as_int(token_id: Any) -> Any:
    """The integer of a NumPy integer, or of an array or a tensor of one number; anything else as it is."""
    if isinstance(token_id, Tensor | np.ndarray):
        return token_id.item() if token_id.shape in ((), (1,), (1, 1)) else token_id
    return token_id.item() if isinstance(token_id, np.integer) else token_id


class WrittenText(Iterator[Step]):
    """A text while it is written: an iterator over its steps, which can be drawn once it is complete."""

    def __init__(self, loaded: LoadedModel, request: GenerationRequest, hooks: Hooks = NO_HOOKS) -> None:
        self.loaded, self.request, self.hooks = loaded, request, hooks
        self.ids = list(request.prompt)  # of the prompt and of what was written so far
        self.steps = generate(loaded.gpt, loaded.begin(request), hooks)

    def __next__(self) -> Step:
        step = next(self.steps)
        if step.token_id not in self.loaded.end_token_ids:
            self.ids.append(step.token_id)
        return step

    def close(self) -> None:
        """Stop writing, and free the memory that the model needs for it."""
        self.steps.close()

    def __repr__(self) -> str:
        n_written = len(self.ids) - len(self.request.prompt)
        return (
            f"Text written by {self.loaded.name}, {counted(n_written, 'token')} so far\n"
            f"{shortened(self.loaded.tokenizer.decode(self.ids))!r}\n"
            "iterate over its steps; show() draws it in a notebook, to_html(path) in a file"
        )

    def trace(self) -> Trace:
        """Write the text to its end, and trace all of it that the model can read."""
        for _ in self:
            pass
        request, loaded = self.request, self.loaded
        ids = self.ids[: loaded.config.context_length]
        trace = loaded.trace_with(loaded.lens.gpt, ids, head_mask=request.head_mask, hooks=self.hooks)
        settings = {name: getattr(request.sampling, name) or 0 for name in SAMPLING_OPTIONS}
        return replace(trace, n_prompt=len(request.prompt), settings=settings | {"seed": request.seed})

    def _repr_html_(self) -> str | None:
        return self.trace()._repr_html_() if self.request.record else None

    def show(self, *, exact: bool = False) -> None:
        """Write the text to its end and draw it in the cell that is running, as ``Trace.show`` does."""
        self.trace().show(exact=exact)

    def to_html(self, path: str | Path, *, exact: bool = False) -> None:
        """Write the text to its end and a file that draws it, as ``Trace.to_html`` does."""
        self.trace().to_html(path, exact=exact)
