"""Circuits over tokens: what the weights of a head, or of two composed heads, do to the vocabulary."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal, NamedTuple, TypedDict

import torch
from torch import Tensor

from ..config import MAX_VOCAB_SIZE, GPTConfig, check_int
from ..drawing.heat_map import Part, in_digits
from ..errors import InputError, InvalidValue
from ..gpt import GPT, Block
from ..modules.head_tensors import Head
from .answer import Answer, NamedToken, NotSent, SentAs, Shape, TopTokens, sent
from .lens import Lens
from .progress import Progress, ignore, part
from .question import HeadIndex, Json, Layer, Within
from .text_pass import LOGITS_AT_ONCE

Circuit = Literal["ov", "qk"]
Side = Literal["q", "k"]
MAX_SENT = 1_000  # pairs
Factor = Callable[[Tensor], Tensor]  # from token ids (n,) to rows (n, head_dim)


class TokenPairs(NamedTuple):
    """Pairs of tokens in descending order of ``value``; each tensor is ``(k,)`` on the CPU."""

    source: Tensor
    target: Tensor
    value: Tensor


@dataclass(frozen=True)
class TokenCircuit:
    """A matrix over pairs of tokens, ``left @ right.T``, that is never formed; both are ``(vocab_size, head_dim)``.

    In an OV circuit, entry ``[source, target]`` is what the head adds to the logit of ``target`` if it gives ``source``
    all of its attention. In a QK circuit, it is the attention score between the query of ``source`` and the key of
    ``target``.
    """

    left: Tensor
    right: Tensor

    def eigenvalues(self) -> Tensor:
        """The eigenvalues that are not zero by construction, ``(head_dim,)`` complex128, the largest magnitude first.

        Those of ``left @ right.T`` are those of ``right.T @ left``, which is small.
        """
        pairs = zip(self.right.split(LOGITS_AT_ONCE // 64), self.left.split(LOGITS_AT_ONCE // 64), strict=True)
        small = torch.stack([right.double().mT @ left.double() for right, left in pairs]).sum(0)
        found = torch.linalg.eigvals(small.cpu())
        return found[found.abs().argsort(descending=True, stable=True)]

    def largest(self, k: int, source: int | None = None, progress: Progress = ignore) -> TokenPairs:
        """The ``k`` pairs with the largest entries, or those of one ``source``; a few rows at a time.

        Raises ``InputError`` unless ``k`` is from 1 to ``MAX_VOCAB_SIZE``.
        """
        check_int("top", k, MAX_VOCAB_SIZE)
        n = len(self.right)
        rows = torch.arange(n) if source is None else torch.tensor([source])
        k = min(k, len(rows) * n)
        value, place = torch.full((k,), -torch.inf), torch.zeros(k, dtype=torch.long)
        for some in rows.split(max(1, LOGITS_AT_ONCE // n)):
            entries = self.left[some.to(self.left.device)] @ self.right.mT
            has_larger = (entries.amax(1) > value[-1].to(entries)).cpu()  # false for most pieces
            if has_larger.any():
                some = some[has_larger]
                entries = entries[has_larger.to(entries.device)].flatten()
                found = entries.topk(min(k, len(entries)))
                index = found.indices.cpu()
                value = torch.cat([value, found.values.cpu()])
                place = torch.cat([place, some[index // n] * n + index % n])
                order = value.argsort(descending=True, stable=True)[:k]
                value, place = value[order], place[order]
            progress(float(some[-1] + 1) / n if source is None else 1.0)
        return TokenPairs(place // n, place % n, value)


class TokenPair(TypedDict):
    source: NamedToken
    target: NamedToken
    value: float


@dataclass(frozen=True)
class CircuitSummary(Answer):
    """The pairs of tokens with the largest entries, and the eigenvalues with their sum divided by the sum of their
    magnitudes. A token is represented by its embedding, plus the first MLP's output for it in heads after the first
    layer, as the norm before the head passes it on.

    """

    circuit: Annotated[Circuit, SentAs(str)]
    layer: int
    head: int
    earlier: Annotated[Head | None, NotSent()]
    side: Annotated[Side | None, SentAs(str | None)]
    distance: int
    source: Annotated[TopTokens, NotSent(), "The ids of the first tokens of `pairs()`."]
    target: Annotated[TopTokens, NotSent(), "The ids of the second ones."]
    value: Annotated[Tensor, Shape(("k",)), NotSent(), "The entries for these pairs, in descending order."]
    eigenvalues: Annotated[
        Tensor,
        Shape(("head_dim", "2")),
        SentAs(list[tuple[float, float]]),
        "Real and imaginary parts of those that are not zero by construction, the largest magnitude first.",
    ]
    eigenvalue_score: Annotated[
        float,
        "The sum of the eigenvalues divided by the sum of their magnitudes, from -1 to 1: near 1, tokens promote "
        "themselves (OV: the head copies) or prefer themselves (QK).",
    ]

    @property
    def summary(self) -> str:
        if not len(self.value):
            return ""
        source, target = self.token_texts(self.source[:1])[0], self.token_texts(self.target[:1])[0]
        value, score = in_digits(float(self.value[0])), in_digits(self.eigenvalue_score)
        said = "Attention to {} raises {} most" if self.circuit == "ov" else "The query {} attends to the key {} most"
        return f"{said.format(source, target)}: {value}. The eigenvalue score is {score}."

    def drawn(self) -> Iterator[Part]:
        for each in super().drawn():
            is_complex = each.name == "eigenvalues"
            yield each._replace(axes=("head_dim", ("real", "imaginary"))) if is_complex else each

    @property
    @sent
    def earlier_layer(self) -> int | None:
        return self.earlier[0] if self.earlier else None

    @property
    @sent
    def earlier_head(self) -> int | None:
        return self.earlier[1] if self.earlier else None

    @sent
    def pairs(self) -> list[TokenPair]:
        """The largest entries, in descending order. OV: what attention to ``source`` adds to the logit of ``target``,
        before the final norm's division. QK: the attention score of the query of ``source`` with the key of ``target``.
        """
        columns = self.named(self.source.tolist()), self.named(self.target.tolist()), self.value.tolist()
        return [
            {"source": source, "target": target, "value": value} for source, target, value in zip(*columns, strict=True)
        ]


FACTORS_PART = 0.2  # of the work of ``token_circuit``, roughly; the rest is the search for the largest pairs


def token_circuit(
    lens: Lens,
    layer: Layer,
    head: HeadIndex,
    circuit: Annotated[Circuit, "`ov` or `qk`."] = "ov",
    *,
    earlier: Annotated[
        Head | None, "the circuit of two composed heads: the head reads what this earlier head writes."
    ] = None,
    side: Annotated[
        Side | None,
        "For the QK circuit of two composed heads: whether the queries (`q`) or the keys (`k`) read what the earlier "
        "head writes.",
    ] = None,
    distance: Annotated[
        int,
        Within(below="context_length"),
        "For a QK circuit with rotary positions: how many positions the query comes after the key.",
    ] = 0,
    token: Annotated[
        str | int | None,
        Json(int),
        Within(below="vocab_size"),
        "The id of a source or query token: pairs are then those of this token alone.",
    ] = None,
    top: Annotated[int, Within(1, MAX_SENT), "The number of pairs."] = 20,
    progress: Progress = ignore,
) -> CircuitSummary:
    """What a head's weights do to the vocabulary: the tokens that attention to a token promotes (its OV circuit),
    or the pairs of query and key tokens that it prefers (its QK circuit).

    See ``vocabulary_circuit``.
    """
    source = lens.token_id(token)
    found = vocabulary_circuit(
        lens.gpt,
        circuit=circuit,
        layer=layer,
        head=head,
        earlier=earlier,
        side=side,
        distance=distance,
        progress=part(progress, 0, FACTORS_PART),
    )
    pairs, eigenvalues = found.largest(top, source, part(progress, FACTORS_PART, 1)), found.eigenvalues()
    return CircuitSummary(
        circuit,
        layer,
        head,
        earlier,
        side,
        distance,
        *pairs,
        eigenvalues=torch.view_as_real(eigenvalues).float(),
        eigenvalue_score=eigenvalue_score(eigenvalues),
    )


def eigenvalue_score(eigenvalues: Tensor) -> float:
    """``sum(l) / sum(|l|)``: 1 if all eigenvalues are positive, so that tokens promote or prefer themselves; -1 if all
    are negative (Elhage et al. 2021, "summarizing OV/QK matrices"). 0 if all are 0.
    """
    total = float(eigenvalues.abs().sum())
    return float(eigenvalues.real.sum()) / total if total else 0.0


@torch.no_grad()
def vocabulary_circuit(
    gpt: GPT,
    *,
    circuit: Circuit,
    layer: int,
    head: int,
    earlier: Head | None = None,
    side: Side | None = None,
    distance: int = 0,
    progress: Progress = ignore,
) -> TokenCircuit:
    """The OV or QK circuit of a head over the vocabulary (Elhage et al. 2021).

    The stream at a token is its embedding; for heads after the first layer, the first MLP's output for it is added, as
    in ``head_roles.copying_scores``. It has no position embedding and nothing from other heads. Attention reads this
    stream through its own norm, division included.

    - "ov": ``x W_V W_O`` times the output head, through the gain of the final norm. This leaves out
      whatever is the same for every source (value biases and the norm's bias), and the final norm's division, which
      depends on the rest of the stream: a row's entries are its logits up to one positive factor.
    - "qk": the attention score itself, as the head computes it, with its biases, scale, normalisation of queries and
      keys, and rotation for a query ``distance`` positions after its key.

    With an ``earlier`` head, as ``(layer, head)``, the circuit is that of two composed heads. In "ov", ``head`` reads
    what the earlier head writes for the source (virtual attention head). In "qk", the ``side``, "q" or "k", reads what
    the earlier head writes for its token instead of that token (Q- and K-composition); the other side is as above. The
    norm between the heads enters with its gain, without its bias and its division.

    ``gpt`` is in float32. Raises ``InputError`` for a head that does not exist or is not earlier, for a ``side`` or
    ``distance`` without meaning, and for a composed "qk" if the model normalises queries and keys: the part of one
    earlier head cannot be told apart then.
    """
    check_circuit(gpt.config, circuit, layer, head, earlier, side, distance)
    block = gpt.blocks[layer]
    reading = block.attn.matrices(distance)
    read = partial(tokens_alone, gpt, layer)

    def value(ids: Tensor) -> Tensor:
        return without_bias(block, read(ids)) @ reading.W_V[head]

    def logits(ids: Tensor) -> Tensor:
        return gpt.fold_norm(gpt.lm_head.weight[ids]) @ block.attention_adds(reading.W_O[head]).mT

    def query(ids: Tensor) -> Tensor:
        x = block.attention_input(read(ids))[:, None]
        return block.attn.queries_keys_values(x, distance, head).query[:, 0, 0] * block.attn.scale

    def key(ids: Tensor) -> Tensor:
        x = block.attention_input(read(ids))[:, None]
        return block.attn.queries_keys_values(x, 0, head).key[:, 0, 0]

    def through_earlier(W: Tensor) -> Factor:
        """From tokens to what the earlier head writes for them, read by ``W`` ``(C, head_dim)``."""
        assert earlier is not None
        other = gpt.blocks[earlier[0]]
        written = other.attn.matrices()
        between = written.W_V[earlier[1]] @ (other.attention_adds(written.W_O[earlier[1]]) @ block.fold_norm(W.mT).mT)
        return lambda ids: without_bias(other, tokens_alone(gpt, other.layer, ids)) @ between

    left: Factor = value if circuit == "ov" else query
    right: Factor = logits if circuit == "ov" else key
    if earlier is not None:
        if circuit == "ov":
            left = through_earlier(reading.W_V[head])
        elif side == "q":
            left = through_earlier(reading.W_Q[head] * block.attn.scale)
        else:
            right = through_earlier(reading.W_K[head])
    return TokenCircuit(
        for_all_tokens(gpt, left, part(progress, 0, 0.5)), for_all_tokens(gpt, right, part(progress, 0.5, 1))
    )


def check_circuit(
    config: GPTConfig,
    circuit: str,
    layer: int,
    head: int,
    earlier: Head | None,
    side: str | None,
    distance: int,
) -> None:
    """Raise ``InputError`` unless the circuit exists."""
    check_int("layer", layer, config.n_layer - 1, least=0)
    check_int("head", head, config.n_head - 1, least=0)
    check_int("distance", distance, config.context_length - 1, least=0)
    if circuit not in ("ov", "qk"):
        raise InvalidValue("circuit", circuit, "'ov' or 'qk'")
    if distance and (circuit == "ov" or config.rotary is None):
        reason = "An OV circuit has no distance." if circuit == "ov" else "This model's positions are not rotary."
        raise InputError("distance", f"{reason} A distance needs the circuit 'qk' and rotary positions.")
    if (side is not None) != (earlier is not None and circuit == "qk"):
        raise InvalidValue("side", side, "'q' or 'k' for the circuit 'qk' with an earlier head, and nothing otherwise")
    if earlier is None:
        return
    if side not in (None, "q", "k"):
        raise InvalidValue("side", side, "'q' or 'k'")
    if not 0 <= earlier[0] < layer:
        raise InvalidValue("earlier_layer", earlier[0], f"a layer before layer {layer}")
    check_int("earlier_head", earlier[1], config.n_head - 1, least=0)
    if circuit == "qk" and config.qk_norm:
        message = "This model normalises each query and key, so the part of one earlier head cannot be told apart."
        raise InputError("model", message)


def direct_logits(gpt: GPT, vector: Tensor) -> Tensor:
    """What a vector ``(C,)`` in the residual stream adds to the logit of each token directly, ``(vocab_size,)``.

    It goes through the gain of the final norm, but not its division, which depends on the rest of the stream: the
    numbers are logits up to one positive factor.
    """
    rows = gpt.lm_head.weight.split(max(1, LOGITS_AT_ONCE // gpt.config.n_embd))
    return torch.cat([gpt.fold_norm(some) @ vector for some in rows]).cpu()


def tokens_alone(gpt: GPT, layer: int, ids: Tensor) -> Tensor:
    """The residual stream ``(n, C)`` before a layer if each of ``ids`` ``(n,)`` were alone and no head did anything.

    That is the embedding without a position, plus the output of the first MLP for it after the first layer, as in Wang
    et al. 2023.
    """
    embedding: Tensor = gpt.wte(ids)
    return embedding if layer == 0 else gpt.blocks[0](embedding, lambda _, x: torch.zeros_like(x))


def without_bias(block: Block, x: Tensor) -> Tensor:
    """The input of attention without the norm's bias, which is the same for every ``x`` ``(..., C)``."""
    return block.attention_input(x) - block.attention_input(torch.zeros_like(x[:1]))


def for_all_tokens(gpt: GPT, factor: Factor, progress: Progress) -> Tensor:
    """``factor`` of every token id, ``(vocab_size, head_dim)``, computed a few at a time."""
    n = gpt.config.vocab_size
    found = []
    for ids in torch.arange(n, device=gpt.device).split(max(1, LOGITS_AT_ONCE // gpt.config.inner_dim)):
        found.append(factor(ids))
        progress(float(ids[-1] + 1) / n)
    return torch.cat(found)
