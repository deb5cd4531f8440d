"""Roles of heads: scores for well-known roles, and a threshold above which a head is labelled with one."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import torch
from torch import Tensor
from torch.nn import functional as F

from ..config import GPTConfig
from ..drawing.heat_map import Part
from ..drawing.metrics import entropy_in_bits
from ..drawing.recorded_pass import take_weights
from ..errors import InputError, InvalidValue
from ..gpt import GPT
from ..tokenizer import token_text
from .answer import Answer, PerHead, SentAs, with_tensors_as
from .lens import Lens
from .progress import Progress, ignore
from .text_pass import TextPass, TokenizedModel
from .token_circuits import tokens_alone

Role = Literal["previous_token", "duplicate_token", "induction"]

# How many tokens back a head of each role looks, in a text of ``length`` random tokens that are then repeated.
# The roles and this way of measuring them are from Elhage et al. 2021 and Olsson et al. 2022.
ROLES: dict[Role, Callable[[int], int]] = {
    "previous_token": lambda _length: 1,
    "duplicate_token": lambda length: length,  # the same token, at its first occurrence
    "induction": lambda length: length - 1,  # the token after that occurrence
}

# Other tokens a head may attend to: the first, which is an attention sink (Xiao et al. 2024), and the query itself.
Look = Literal[Role, "first_token", "self"]
LOOKS: tuple[Look, ...] = ("previous_token", "first_token", "self", "duplicate_token", "induction")
TEXT_LABELS: tuple[Look, ...] = ("previous_token", "induction", "first_token")  # that a head can have in one text

# A head is said to have a role, in the API and on the page, if its mean weight there is at least CLEAR_ROLE and at
# least CLEAR_TIMES_UNIFORM times that of uniform attention. Otherwise it has no clear role.
# The head that a text opens with depends on CLEAR_ROLE alone.
CLEAR_ROLE = 0.3
CLEAR_TIMES_UNIFORM = 3
MIN_QUERIES = 3  # for a role in one text: with fewer, the match may be due to chance

# A head is labelled as copying from this score on. Heads with random weights stay below 0.75, even in small models.
CLEAR_COPYING = 0.9
NO_ROLE, COPYING = "no clear role", "copying"
CHANCE = 0.5  # the copying score of random weights

MIN_CONTEXT_LENGTH = 4  # two tokens, repeated

# The random tokens on which every role score is measured, so that a score is the same number everywhere.
N_TEXTS, LENGTH, SEED = 16, 64, 0
N_SAMPLED = 512  # tokens on which copying is measured


def threshold(uniform: float) -> float:
    """The mean weight from which a head has a role in which uniform attention has the mean weight ``uniform``."""
    return max(CLEAR_ROLE, CLEAR_TIMES_UNIFORM * uniform)


class RoundedScores(TypedDict):
    """``RoleScores`` as plain numbers; the scores of each role are ``[layer][head]``."""

    previous_token: list[list[float]]
    duplicate_token: list[list[float]]
    induction: list[list[float]]
    uniform: float
    first_loss: float
    second_loss: float


@dataclass(frozen=True)
class RoleScores(Answer):
    """How well each head fits each role, measured on random tokens that are repeated once.

    Random tokens can be predicted in the second half only, by copying from the first.
    """

    scores: Annotated[
        dict[Look, PerHead],
        "The mean attention weight from a token of the second half to the token that the role looks at.",
    ]
    errors: Annotated[dict[Look, PerHead], "The standard errors of `scores` over the texts; 0 for a single text."]
    entropy: Annotated[PerHead, "The mean entropy of the weights of those tokens, in bits."]
    uniform: Annotated[float, "The score of a head that attends to all tokens equally."]
    uniform_entropy: Annotated[float, "The entropy of equal weights, in bits."]
    first_loss: Annotated[float, "The loss on the first half, in nats per token."]
    second_loss: Annotated[float, "The loss on the second half, in nats per token."]

    @property
    def summary(self) -> str:
        best = [f"{role.replace('_', ' ')} {self.peak(each)}" for role, each in self.scores.items()]
        return f"The highest scores: {'; '.join(best)}."

    def best(self, role: Look) -> tuple[int, int, float]:
        """The layer and head with the highest score, and that score."""
        scores = self.scores[role]
        layer, head = divmod(int(scores.argmax()), scores.shape[1])
        return layer, head, float(scores[layer, head])

    def rounded(self) -> RoundedScores:
        """All numbers as plain floats, rounded to four decimal places."""
        scores = {role: [[round(x, 4) for x in row] for row in self.scores[role].tolist()] for role in ROLES}
        return {
            "previous_token": scores["previous_token"],
            "duplicate_token": scores["duplicate_token"],
            "induction": scores["induction"],
            "uniform": round(self.uniform, 4),
            "first_loss": round(self.first_loss, 4),
            "second_loss": round(self.second_loss, 4),
        }


class LookScores(TypedDict):
    previous_token: float
    first_token: float
    self: float
    duplicate_token: float
    induction: float


class RoleGrids(TypedDict):
    previous_token: PerHead
    first_token: PerHead
    self: PerHead
    duplicate_token: PerHead
    induction: PerHead


class HeadScores(LookScores):
    copying: Annotated[
        float,
        "The share of other tokens whose logits the head raises by less than that of the token it looks at. It is "
        "computed from the weights, on a sample of tokens.",
    ]
    entropy: Annotated[float, "In bits."]


class HeadRole(TypedDict):
    label: Annotated[str, 'What it clearly looks at, else "copying" if it clearly copies, else "no clear role".']
    scores: Annotated[
        dict[str, float],
        SentAs(HeadScores),
        "Mean attention weights on random tokens that are repeated once, unless a score says otherwise.",
    ]
    errors: Annotated[
        dict[Look, float], SentAs(LookScores), "The standard errors of these mean weights, over the random texts."
    ]
    baseline: Annotated[
        dict[str, float],
        SentAs(HeadScores),
        "The scores of uniform attention on the same texts, and, for copying, of random weights.",
    ]


class RolesContent(TypedDict):
    threshold: Annotated[float, "The lowest score that counts as a clear role."]
    copying_threshold: Annotated[float, "The lowest score at which a head counts as copying."]
    heads: Annotated[list[list[HeadRole]], "`[layer][head]`"]


@dataclass(frozen=True)
class HeadRoles(RoleScores):
    """For each layer and head a label, its scores, and the scores of uniform attention or random weights.

    To the scores of ``RoleScores`` it adds how reliably each head copies.
    """

    copying: Annotated[
        PerHead, "The share of other tokens whose logits the head raises by less than that of the token it looks at."
    ]

    def drawn(self) -> Iterator[Part]:
        yield Part("labels", self.labels, ("n_layer", "n_head"))
        yield from super().drawn()

    @property
    def labels(self) -> list[list[str]]:
        """``[layer][head]``: the head's role, or, without a clear one, whether it clearly copies."""
        return [[head["label"] for head in row] for row in self.content()["heads"]]

    def content(self) -> RolesContent:
        return describe_roles(with_tensors_as(Tensor.tolist, self.numbers()))


def describe_roles(measured: Mapping[str, Any]) -> RolesContent:
    """The fields of ``HeadRoles``, with lists in place of tensors, head by head: a label, its scores and their errors,
    and those of uniform attention.

    The label is the head's role, or, without a clear one, "copying" if the head clearly copies.
    """
    scores, uniform = measured["scores"], measured["uniform"]
    of_any_head = {"copying": CHANCE, "entropy": measured["uniform_entropy"]}
    baseline: dict[str, float] = dict.fromkeys(map(str, LOOKS), uniform) | of_any_head

    def head(layer: int, index: int) -> HeadRole:
        own: dict[Look, float] = {role: scores[role][layer][index] for role in LOOKS}
        more: dict[str, float] = {name: measured[name][layer][index] for name in ("copying", "entropy")}
        errors = {role: measured["errors"][role][layer][index] for role in LOOKS}
        return {
            "label": label(own, uniform, more["copying"]),
            "scores": {str(role): score for role, score in own.items()} | more,
            "errors": errors,
            "baseline": baseline,
        }

    n_layer, n_head = len(measured["entropy"]), len(measured["entropy"][0])
    return {
        "threshold": threshold(uniform),
        "copying_threshold": CLEAR_COPYING,
        "heads": [[head(layer, index) for index in range(n_head)] for layer in range(n_layer)],
    }


@dataclass(frozen=True)
class TextRoles(Answer):
    """For each role the mean attention weight on its keys by layer and head, the same for uniform attention, and
    the number of queries that have such keys.
    """

    scores: Annotated[
        dict[Look, PerHead],
        SentAs(RoleGrids),
        "`[layer][head]`: the mean weight over the queries that have such keys.",
    ]
    uniform: Annotated[dict[Look, float], SentAs(LookScores), "The same for uniform attention."]
    queries: Annotated[dict[Look, int], SentAs(LookScores), "How many queries have such keys."]

    @property
    def summary(self) -> str:
        best = [f"{role.replace('_', ' ')} {self.peak(each)}" for role, each in self.scores.items()]
        return f"The highest scores: {'; '.join(best)}."


def clear_role(scores: Mapping[Look, float], uniform: float) -> Look | None:
    """The role on which a head scores highest; None if it is not clear."""
    role = max(LOOKS, key=lambda look: scores[look])
    return role if scores[role] >= threshold(uniform) else None


def label(scores: Mapping[Look, float], uniform: float, copying: float) -> str:
    """A head's role in words, or, without a clear one, "copying" if it clearly copies."""
    role = clear_role(scores, uniform)
    return role.replace("_", " ") if role else COPYING if copying >= CLEAR_COPYING else NO_ROLE


def ordinary_tokens(loaded: TokenizedModel) -> Tensor:
    """The ids of the tokens used to measure head roles, in order.

    These are the printable tokens; in a byte-level vocabulary, only merged ones, because many single bytes never occur
    on their own in training, so their embeddings are untrained.
    """
    special = set(loaded.tokenizer.special_tokens.values())
    ids = [
        i
        for i in range(loaded.gpt.config.vocab_size)
        if i not in special and token_text(loaded.tokenizer, i).isprintable()
    ]
    if loaded.tokenizer.kind == "bpe":
        ids = [i for i in ids if len(loaded.tokenizer.token_bytes(i)) > 1] or ids
    return torch.tensor(ids)


def repeated_tokens(
    loaded: TokenizedModel, n_texts: int, length: int, seed: int, tokens: Tensor | None = None
) -> Tensor:
    """``n_texts`` texts of ``length`` random ``tokens``, each followed by itself: ``(n_texts, 2 * length)``."""
    ids = ordinary_tokens(loaded) if tokens is None else tokens
    generator = torch.Generator().manual_seed(seed)
    return ids[torch.randint(len(ids), (n_texts, length), generator=generator)].repeat(1, 2)


def check_repeats(config: GPTConfig) -> None:
    """Raise ``InputError`` if the context is too short to repeat two tokens."""
    if config.context_length < MIN_CONTEXT_LENGTH:
        needed = f"a context_length of at least {MIN_CONTEXT_LENGTH}, to repeat two tokens"
        raise InputError("model", f"The model needs {needed}; found {config.context_length}.")


def random_texts(loaded: TokenizedModel) -> list[list[int]]:
    """The token ids of the texts on which roles are measured. Raises ``InputError`` as ``check_repeats`` does."""
    check_repeats(loaded.gpt.config)
    context_length = loaded.gpt.config.context_length
    return repeated_tokens(loaded, N_TEXTS, min(LENGTH, context_length // 2), SEED).tolist()


def sampled_tokens(loaded: TokenizedModel, n_tokens: int = N_SAMPLED, seed: int = 0) -> Tensor:
    """At most ``n_tokens`` different tokens, drawn at random: ``(N,)``."""
    ids = ordinary_tokens(loaded)
    generator = torch.Generator().manual_seed(seed)
    return ids[torch.randperm(len(ids), generator=generator)[:n_tokens]]


@torch.no_grad()
def role_scores(
    loaded: TokenizedModel,
    n_texts: int = N_TEXTS,
    length: int = LENGTH,
    seed: int = SEED,
    tokens: Tensor | None = None,
    progress: Progress = ignore,
) -> RoleScores:
    """Score every head for every role, on texts of at most ``length`` tokens that are repeated once, drawn from
    ``tokens`` as in ``repeated_tokens``.

    Raises ``InputError`` if the context is too short to repeat two tokens.
    """
    check_repeats(loaded.gpt.config)
    length = min(length, loaded.gpt.config.context_length // 2)
    n_layer, n_head = loaded.gpt.config.n_layer, loaded.gpt.config.n_head
    loaded.gpt.eval()
    queries = torch.arange(length, 2 * length)
    keys = {role: keys_of(role, queries, length) for role in LOOKS}
    scores: dict[Look, Tensor] = {role: torch.empty(n_texts, n_layer, n_head) for role in LOOKS}
    entropy = torch.zeros(n_layer, n_head)
    losses = torch.zeros(2 * length - 1)
    for i, text in enumerate(
        repeated_tokens(loaded, n_texts, length, seed, tokens)[:, None]
    ):  # one at a time: less memory
        forward = loaded.gpt(text.to(loaded.gpt.device), record=range(n_layer))
        attention = take_weights(forward.attention, range(n_layer)).cpu()
        for role in LOOKS:
            scores[role][i] = attention[..., queries, keys[role]].mean(-1)
        entropy += entropy_in_bits(attention[..., length:, :]).mean(-1) / n_texts
        losses += F.cross_entropy(forward.logits[0, :-1].float().cpu(), text[0, 1:], reduction="none") / n_texts
        progress((i + 1) / n_texts)
    return RoleScores(
        {role: each.mean(0) for role, each in scores.items()},
        {role: standard_error(each) for role, each in scores.items()},
        entropy,
        uniform=float((1 / (queries + 1)).mean()),
        uniform_entropy=float((queries + 1).log2().mean()),
        first_loss=float(losses[: length - 1].mean()),
        second_loss=float(losses[length:].mean()),  # the first token of the second half cannot be predicted
    )


def head_roles(loaded: TokenizedModel, **chosen: Any) -> HeadRoles:
    """``role_scores``, with what is ``chosen`` of its arguments, and ``copying_scores``."""
    return HeadRoles(**vars(role_scores(loaded, **chosen)), copying=copying_scores(loaded.gpt, sampled_tokens(loaded)))


def roles(
    lens: Lens,
    *,
    tokens: Iterable[str | int | Tensor] | None = None,
    length: int | None = None,
    seed: int = SEED,
    progress: Progress = ignore,
) -> HeadRoles:
    """What each head of a model looks at on random tokens that are repeated once, and whether it copies.

    The random tokens are drawn from part of the vocabulary: from printable tokens and, in a byte-level vocabulary, from
    merged ones (``ordinary_tokens``). On tokens drawn from the whole vocabulary, scores may be lower. In Python,
    ``tokens`` are drawn from instead, as texts or ids, such as ``range(vocab_size)``. ``seed`` chooses 16 texts; in
    each, ``length`` tokens are repeated, by default 64 or half of a shorter context. Copying does not depend on these.
    """
    half = lens.gpt.config.context_length // 2
    if length is not None and not 2 <= length <= half:
        raise InvalidValue("length", length, f"2 to {half}, half of the context")
    ids = None if tokens is None else torch.tensor([lens.token_id(token, "tokens") for token in tokens])
    if ids is not None and len(ids) < 2:
        raise InvalidValue("tokens", f"{len(ids)} tokens", "at least 2")
    return head_roles(lens, length=length or LENGTH, seed=seed, tokens=ids, progress=progress)


def standard_error(samples: Tensor) -> Tensor:
    """The standard error of the mean over the first dimension of ``(n, ...)``; 0 for a single sample."""
    n = len(samples)
    return samples.std(0, correction=1) / n**0.5 if n > 1 else torch.zeros_like(samples[0])


def keys_of(role: Look, queries: Tensor, length: int) -> Tensor:
    """The token that a role looks at from each of ``queries``, in a text of ``length`` tokens and their repetition."""
    match role:
        case "first_token":
            return torch.zeros_like(queries)
        case "self":
            return queries
    return queries - ROLES[role](length)


def text_scores(attention: Tensor, ids: Sequence[int]) -> dict[Look, Tensor]:
    """How well each head fits each role in one text: mean weights ``(n_layer, n_head)`` over eligible queries.

    ``attention`` ``(n_layer, n_head, T, T)`` holds the weights for the tokens ``ids``. ``previous_token`` is the weight
    on the token before, ``induction`` that on the tokens that followed earlier occurrences of the query's own token,
    ``first_token`` that on the first. A query is eligible if the role has a key for it; without any, the score is zero.
    """
    return {role: mean_weight(attention, mask) for role, mask in role_masks(ids, TEXT_LABELS).items()}


def uniform_attention(T: int) -> Tensor:
    """The weights ``(T, T)`` of a head that attends to all tokens so far equally."""
    return torch.ones(T, T).tril() / torch.arange(1, T + 1)[:, None]


@torch.no_grad()
def text_roles(text: TextPass, *, progress: Progress = ignore) -> TextRoles:
    """How well each head of a model fits each role in a text, instead of random tokens."""
    T = len(text.ids)
    masks = role_masks(text.ids, LOOKS)
    uniform = uniform_attention(T)
    scores: dict[Look, list[Tensor]] = {role: [] for role in LOOKS}
    for layer in range(text.config.n_layer):
        attention = text.attention(layer)
        for role in LOOKS:
            scores[role].append(mean_weight(attention, masks[role]))
        progress((layer + 1) / text.config.n_layer)
    return TextRoles(
        {role: torch.stack(rows) for role, rows in scores.items()},
        {role: float(mean_weight(uniform, masks[role])) for role in LOOKS},
        {role: int(masks[role].any(1).sum()) for role in LOOKS},
    )


def clear_text_roles(attention: Tensor, ids: Sequence[int]) -> list[list[tuple[str, float]]]:
    """For each ``[layer][head]``, the role that the head fits best in one text ("" if none is clear) and its score.

    ``attention`` is that of ``text_scores``. The rule is that of ``clear_role``, compared with uniform attention over
    the same tokens; a role with fewer than ``MIN_QUERIES`` eligible queries is never clear.
    """
    T = len(ids)
    uniform = uniform_attention(T)
    masks = role_masks(ids, TEXT_LABELS)
    names = list(masks)
    scores = torch.stack([mean_weight(attention, mask) for mask in masks.values()])
    least = torch.tensor(
        [
            threshold(float(mean_weight(uniform, mask))) if int(mask.any(1).sum()) >= MIN_QUERIES else math.inf
            for mask in masks.values()
        ]
    )
    is_clear = scores >= least[:, None, None]
    best = torch.where(is_clear, scores, scores - 1).max(dim=0)  # clear roles rank before all others
    return [
        [
            (names[role] if is_clear[role, layer, head] else "", float(scores[role, layer, head]))
            for head, role in enumerate(row)
        ]
        for layer, row in enumerate(best.indices.tolist())
    ]


def mean_weight(attention: Tensor, mask: Tensor) -> Tensor:
    """The weight on the keys in ``mask`` ``(T, T)``, averaged over the queries that have any: ``(...)``."""
    return (attention * mask).sum((-1, -2)) / max(int(mask.any(1).sum()), 1)


def role_masks(ids: Sequence[int], roles: Sequence[Look]) -> dict[Look, Tensor]:
    """Where each of ``roles`` looks in the text ``ids``: ``[query][key]``, ``(T, T)``.

    ``duplicate_token`` looks at all earlier occurrences of the query's own token; ``self`` leaves out the first query,
    which has no other key.
    """
    tokens = torch.tensor(ids)
    same = (tokens[:, None] == tokens).tril(-1)  # [query][earlier occurrences of its token]
    T = len(ids)
    masks: dict[Look, Tensor] = {
        "previous_token": torch.eye(T, dtype=torch.bool).roll(-1, 1).tril(-1),
        "duplicate_token": same,
        "induction": F.pad(same[:, :-1], (1, 0)).tril(-1),  # the token after that, before the query itself
        "first_token": torch.zeros(T, T, dtype=torch.bool).index_fill(1, torch.tensor(0), True).tril(-1),
        "self": torch.eye(T, dtype=torch.bool).index_fill(0, torch.tensor(0), False),
    }
    return {role: masks[role] for role in roles}


@torch.no_grad()
def copying_scores(gpt: GPT, ids: Tensor) -> Tensor:
    """How reliably each head copies, ``(n_layer, n_head)``, from 0 to 1, judged by its weights and ``ids`` ``(N,)``.

    If a head gives a token all of its attention, its output through ``W_V`` and ``W_O`` adds to the logit of every
    token (the OV circuit of Elhage et al. 2021). The score is the fraction of the other tokens of ``ids`` whose logits
    it raises less than that token's own, averaged over ``ids``: 1 for a head that copies, 0.5 by chance, 0 for one that
    suppresses what it sees. Name movers score high (Wang et al. 2023, who count how often the token is among the top
    predictions).

    As in that paper, the input of heads after the first layer is a token's embedding plus the output of the first MLP
    for it. Positions, the outputs of other heads, and value biases, which are the same for all tokens, are left out.
    ``gpt`` is in float32. With fewer than two tokens every score is 0.5.
    """
    n_layer, n_head, N = gpt.config.n_layer, gpt.config.n_head, len(ids)
    if N < 2:
        return torch.full((n_layer, n_head), CHANCE)
    ids = ids.to(gpt.device)
    reading = gpt.fold_norm(gpt.lm_head.weight[ids])  # the division in the final norm does not change the order
    scores = []
    for block in gpt.blocks:
        matrices = block.attn.matrices()
        x = block.attention_input(tokens_alone(gpt, block.layer, ids))  # (N, C)
        # (n_head, N, N): from each attended token to each logit
        raised = (x @ matrices.W_V) @ (reading @ block.attention_adds(matrices.W_O).mT).mT
        own = raised.diagonal(dim1=1, dim2=2)[..., None]
        below = (raised < own).float().sum(-1) + ((raised == own).float().sum(-1) - 1) / 2
        scores.append((below / (N - 1)).mean(-1).cpu())
    return torch.stack(scores)
