"""MLP neurons: what excites one in a long text, and what it writes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Any

import torch
from torch import Tensor

from ..config import MAX_VOCAB_SIZE, GPTConfig, check_int
from ..drawing.heat_map import Part, in_context, in_digits
from ..gpt import GPT, Block
from .answer import Answer, NamedToken, NotSent, Shape, TokenIds, TopTokens, sent
from .lens import Lens
from .passages import MIN_DISTANCE, Window, read_long_text, windows
from .progress import Progress, ignore
from .question import Layer, LongText, Within
from .token_circuits import direct_logits

TOKENS_AT_ONCE = 1_024  # of several windows: short ones are slow one by one
BEFORE, AFTER = 24, 8  # tokens shown before and after the one at which a neuron is excited


MAX_SENT = 100  # places and tokens


class WrittenToken(NamedToken):
    logit: Annotated[float, "Per unit of activation, before the final norm's division."]


@dataclass(frozen=True)
class ExcitedAt:
    """A place in the text. All positions are positions in the whole text."""

    position: int
    activation: float
    start: Annotated[int, "The position of the first of `tokens`."]
    ids: Annotated[list[int], NotSent()]
    activations: Annotated[list[float], "The activation at each of `tokens`."]

    @property
    @sent
    def tokens(self) -> TokenIds:
        return self.ids


@dataclass(frozen=True)
class Written(Answer):
    """Tokens and their logits per unit of a neuron's activation."""

    promoted: Annotated[TopTokens, "The ids of tokens, in descending order of `raised`."]
    raised: Annotated[Tensor, Shape(("k",)), "The logits of `promoted`."]
    suppressed: Annotated[TopTokens, "The ids of tokens, in ascending order of `lowered`."]
    lowered: Annotated[Tensor, Shape(("k",)), "The logits of `suppressed`."]
    norm: Annotated[float, "The norm of the neuron's output direction."]


@dataclass(frozen=True)
class Neuron(Answer):
    """The places in the text with the highest and lowest activations, each with its context, and the tokens whose
    logits the neuron's output direction raises and lowers most.
    """

    layer: int
    neuron: int
    n_tokens: int
    highest: Annotated[list[ExcitedAt], "The highest first; at most one within 32 consecutive tokens."]
    lowest: Annotated[list[ExcitedAt], "The lowest first."]
    mean: Annotated[float, "The mean activation over all tokens of the text."]
    positive: Annotated[float, "The share of tokens with an activation above 0."]
    writes: Annotated[Written, NotSent()]  # which does not depend on the text

    @property
    def summary(self) -> str:
        if not self.highest:
            return ""
        first, promoted = self.highest[0], ", ".join(self.token_texts(self.writes.promoted[:5]))
        token = self.token_texts(first.ids[first.position - first.start])
        return f"Most excited at {token} ({first.position}): {in_digits(first.activation)}. It promotes {promoted}."

    def drawn(self) -> Iterator[Part]:
        """The places with the token in question between brackets, in place of lists of tokens and activations."""
        for part in super().drawn():
            found = getattr(self, part.name) if part.name in ("highest", "lowest") else None
            yield part if found is None else part._replace(value=list(map(self.at_place, found)))

    def at_place(self, place: ExcitedAt) -> dict[str, Any]:
        shown = in_context(self.token_texts(place.ids), place.position - place.start)
        return {"position": place.position, "activation": place.activation, "tokens": shown}

    @sent
    def promotes(self) -> list[WrittenToken]:
        """The tokens whose logits the neuron's output raises most."""
        return self.written(self.writes.promoted, self.writes.raised)

    @sent
    def suppresses(self) -> list[WrittenToken]:
        return self.written(self.writes.suppressed, self.writes.lowered)

    @property
    @sent
    def norm(self) -> float:
        """The norm of the neuron's output direction."""
        return self.writes.norm

    def written(self, ids: Tensor, logits: Tensor) -> list[WrittenToken]:
        pairs = zip(self.named(ids.tolist()), logits.tolist(), strict=True)
        return [{**token, "logit": logit} for token, logit in pairs]


def neuron(
    lens: Lens,
    text: LongText,
    layer: Layer,
    neuron: Annotated[int, Within(least=0), "The MLP neuron, counted from 0."],
    *,
    top: Annotated[int, Within(1, MAX_SENT), "How many places and tokens to return."] = 20,
    progress: Progress = ignore,
) -> Neuron:
    """What most excites an MLP neuron in a long text, and which tokens it promotes and suppresses.

    See ``follow_neuron``.
    """
    ids = read_long_text(lens.tokenizer, text)
    return follow_neuron(lens.gpt, ids, layer=layer, neuron=neuron, top=top, progress=progress)


@torch.no_grad()
def follow_neuron(
    gpt: GPT, ids: Sequence[int], *, layer: int, neuron: int, top: int = 20, progress: Progress = ignore
) -> Neuron:
    """Read the tokens ``ids``, of any number, in the windows of ``passages``, and follow one neuron of an MLP.

    The activation is the value after the activation function, and after the product with the second half in a gated
    MLP (``mlp_post`` in ``interventions.sites``), where it may be far below 0. Of any ``MIN_DISTANCE`` consecutive
    tokens, at most one is a place; there are at most ``top`` places. Memory use does not grow with the text, apart
    from a number for each token, and the time is that of reading four thirds of the text up to the layer. Raises
    ``InputError`` for a neuron that does not exist, and for a ``top`` below 1.
    """
    check_neuron(gpt.config, layer, neuron)
    check_int("top", top, MAX_VOCAB_SIZE)
    tokens, by_token = torch.tensor(ids), torch.empty(len(ids))
    for some in batches(windows(len(ids), gpt.config.context_length)):
        texts = torch.stack([tokens[window.start : window.stop] for window in some])
        activations = neurons_of(gpt, layer, gpt.embed(texts.to(gpt.device)))[..., neuron].cpu()
        for window, activation in zip(some, activations, strict=True):
            by_token[window.first : window.stop] = activation[window.first - window.start :]
        progress(some[-1].stop / len(ids))
    return Neuron(
        layer,
        neuron,
        n_tokens=len(ids),
        highest=[context_at(ids, by_token, position) for position in peaks(by_token, top)],
        lowest=[context_at(ids, by_token, position) for position in peaks(-by_token, top)],
        mean=float(by_token.double().mean()),
        positive=float((by_token > 0).float().mean()),
        writes=neuron_writes(gpt, layer, neuron, top),
    )


def check_neuron(config: GPTConfig, layer: int, neuron: int) -> None:
    """Raise ``InputError`` unless the model has this neuron."""
    check_int("layer", layer, config.n_layer - 1, least=0)
    check_int("neuron", neuron, config.inner_dim - 1, least=0)


def batches(windows: Iterable[Window]) -> Iterator[list[Window]]:
    """Consecutive windows of one length, as many as are read at once."""
    for length, same in groupby(windows, lambda window: window.stop - window.start):
        equally_long = list(same)
        at_once = max(1, TOKENS_AT_ONCE // length)
        yield from (equally_long[i : i + at_once] for i in range(0, len(equally_long), at_once))


def neurons_of(gpt: GPT, layer: int, x: Tensor) -> Tensor:
    """The neurons ``(B, T, inner_dim)`` of a layer, from the stream before the first layer."""
    x, block = gpt.run_blocks(x, attend, stop=layer), gpt.blocks[layer]
    output = attend(block, block.attention_input(x))
    return block.neurons(x if block.parallel else x + block.attention_adds(output, output))


def attend(block: Block, x: Tensor) -> Tensor:
    output: Tensor = block.attn(x)[0]
    return output


def peaks(values: Tensor, k: int) -> list[int]:
    """The positions of the ``k`` largest values, of which any two are at least ``MIN_DISTANCE`` apart."""
    left, positions = values.clone(), list[int]()
    while len(positions) < k and float(left.max()) > -torch.inf:
        position = int(left.argmax())
        positions.append(position)
        left[max(0, position - MIN_DISTANCE + 1) : position + MIN_DISTANCE] = -torch.inf
    return positions


def context_at(ids: Sequence[int], values: Tensor, position: int) -> ExcitedAt:
    shown = slice(max(0, position - BEFORE), position + AFTER + 1)
    return ExcitedAt(position, float(values[position]), shown.start, list(ids[shown]), values[shown].tolist())


def neuron_writes(gpt: GPT, layer: int, neuron: int, k: int) -> Written:
    """The tokens whose logits a neuron raises and lowers most: its output direction times the output head.

    The direction is a row of the MLP's second matrix. Effects through later layers are not counted.
    """
    block = gpt.blocks[layer]
    unit = gpt.wte.weight.new_zeros(2, gpt.config.inner_dim)
    unit[0, neuron] = 1
    one, none = block.mlp.output(unit)  # the bias cancels in the difference
    direction = block.mlp_adds(one - none)
    logits = direct_logits(gpt, direction)
    k = min(k, len(logits))
    top, bottom = logits.topk(k), logits.topk(k, largest=False)
    return Written(top.indices, top.values, bottom.indices, bottom.values, float(direction.norm()))
