"""What replaces the context vectors of a head that is removed: zeros, a mean, or those of another text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

import torch
from torch import Tensor

from ...errors import InputError, InvalidValue
from ...gpt import GPT
from ..progress import Progress, ignore
from ..question import Reads
from ..text_pass import Text, TextPass, TokenizedModel

# "zero": zeros, as ``head_mask`` does; this also removes any constant part that later layers rely on. "mean": the
# head's mean over a reference set (Wang et al. 2023). "text_mean": its mean over all positions of the text itself, the
# later ones included, so that later tokens change what is removed at earlier ones. "resample": its context vectors at
# the same positions of another text (Chan et al. 2022).
Method = Literal["zero", "mean", "text_mean", "resample"]
METHODS: tuple[Method, ...] = get_args(Method)
NEEDS_REFERENCE = ("mean", "resample")

MAX_REFERENCE_TOKENS = 64  # of each shipped passage: enough for a mean, and fast
REFERENCE_NAME = "24 short English passages"
PASSAGES = (
    "The old bridge was closed for the winter, and everyone had to walk around by the mill.",
    "When Anna came home, her brother was asleep on the sofa with a book on his face.",
    "Nobody in the village could say who had planted the trees along the river.",
    "He put the letter in a drawer, locked it, and gave the key to his sister.",
    "The train was late again. The people on the platform looked at the clock and said nothing.",
    "A small dog ran into the shop, took a piece of bread from the table, and ran out again.",
    "If you mix blue and yellow paint, you get green. If you add more yellow, the green becomes lighter.",
    "The king asked his three daughters what they wanted, and each of them wanted something else.",
    "My grandmother kept her money in a tin, and the tin was hidden behind the flour.",
    "Water freezes first at the edge of a lake, where it is shallow, and last in the middle.",
    "I have told you before, and I will tell you again: do not open that door.",
    "The boys built a raft from four barrels and a door. It carried them to the island, but not back.",
    "She sang the first line, the children sang the second, and the whole room joined in at the end.",
    "There was a cup on the table, a cup on the chair, and a cup on the floor, and all of them were empty.",
    "Where does the road go? It goes to the sea, and then along the sea to the town.",
    "The doctor listened to his heart for a long time and then told him to eat more fruit.",
    "In spring the farmer sold two cows and bought a horse that nobody else would have.",
    "They waited for the rain to stop. When it stopped, they waited for the mud to dry.",
    "What do you see from the tower? I see the market, the church, and a man with a ladder.",
    "The cat likes the window in the morning and the stove in the evening.",
    "Every child was given an apple and a candle, and told to be back before dark.",
    "A ship came into the harbour with torn sails, and no one on it would say where it had been.",
    "The teacher wrote a number on the board, and the girl in the last row began to laugh.",
    "Good night, said the owl. Good morning, said the lark. Both of them were right.",
)

HeadReplacement = Annotated[
    Method,
    "What a removed head's context vectors are replaced with: zeros (`zero`), their mean over the reference set "
    "(`mean`), their mean over this text, the later tokens included (`text_mean`), or those at the same positions of "
    "another text (`resample`).",
]
# In Python also the context vectors themselves, from ``mean_contexts`` or ``contexts_of``.
Reference = Annotated[
    Sequence[Text] | Tensor | None,
    Reads.TEXTS,
    f"For `mean`, the texts of a reference set instead of the shipped one ({REFERENCE_NAME}). For `resample`, a single "
    "text, of at least as many tokens.",
]


@dataclass(frozen=True)
class ReferenceSet:
    """The texts from which the replacements are taken."""

    name: str
    texts: int
    tokens: int


def read_reference(
    text: TextPass, method: Method, reference: Sequence[Text] | Tensor | None
) -> tuple[Tensor | None, ReferenceSet | None]:
    """What replaces the context vectors of removed heads, as ``replacement`` takes them, and their source.

    Raises ``InputError`` for an unknown method and for a reference that does not fit.
    """
    contexts: Tensor | None = None
    read: ReferenceSet | None = None
    if isinstance(reference, Tensor) or text.made_by is None:
        assert not isinstance(reference, Sequence), "other texts need a pass made by Lens.read"
        contexts = reference
    else:
        ids = None if reference is None else [text.source.parse(each) for each in reference]
        check_texts(method, ids, len(text.ids))
        if method == "resample" and ids:
            contexts = contexts_of(text.read(ids[0]), len(text.ids))
            read = ReferenceSet("the given text", 1, len(ids[0]))
        elif method == "mean":
            name = REFERENCE_NAME if ids is None else "the given texts"
            texts = shipped_passages(text.source) if ids is None else ids
            contexts = text.source.mean_contexts(texts, text.head_mask)
            read = ReferenceSet(name, len(texts), sum(map(len, texts)))
    check_method(text, method, contexts)
    return contexts, read


def shipped_passages(loaded: TokenizedModel) -> list[list[int]]:
    """The token ids of the shipped passages, apart from those with characters that the model does not know."""
    most, texts = min(MAX_REFERENCE_TOKENS, loaded.gpt.config.context_length), []
    for passage in PASSAGES:
        try:
            texts.append(loaded.tokenizer.encode_prompt(passage)[:most])
        except InputError:
            continue
    if not texts:
        raise InputError("reference", "This model knows none of the shipped passages: give a reference of your own.")
    return texts


@torch.no_grad()
def mean_contexts(
    gpt: GPT, texts: Sequence[Sequence[int]], head_mask: Tensor | None = None, progress: Progress = ignore
) -> Tensor:
    """The mean of every head's context vectors over all positions of ``texts``: ``(n_layer, 1, n_head, head_dim)``."""
    total: Tensor | None = None
    for i, ids in enumerate(texts):
        contexts = contexts_of(TextPass(gpt, ids, head_mask)).double().sum(1, keepdim=True)
        total = contexts if total is None else total + contexts
        progress((i + 1) / len(texts))
    assert total is not None, "a reference set has at least one text"
    return (total / sum(map(len, texts))).float()


@torch.no_grad()
def contexts_of(text: TextPass, n: int | None = None) -> Tensor:
    """The context vectors of all heads at the first ``n`` positions of a text, ``(n_layer, n, n_head, head_dim)``."""
    return torch.cat([text.context(layer)[:, :n] for layer in range(text.config.n_layer)])


def check_texts(method: str, texts: Sequence[Sequence[int]] | None, n_tokens: int) -> None:
    """Raise ``InputError`` unless the token ids ``texts`` of a reference fit the method and a text of ``n_tokens``."""
    if method not in NEEDS_REFERENCE and texts is not None:
        allowed = " or ".join(repr(each) for each in NEEDS_REFERENCE)
        raise InputError("reference", f"A reference needs the method {allowed}, found {method!r}.")
    if method == "mean" and texts is not None and not texts:
        raise InvalidValue("reference", "no texts", "at least one, for the method 'mean'")
    if method == "resample":
        if texts is None or len(texts) != 1:
            raise InvalidValue("reference", f"{len(texts or ())} texts", "a single text, for the method 'resample'")
        if len(texts[0]) < n_tokens:
            length, least = f"{len(texts[0])} tokens", f"a text of at least {n_tokens} tokens, as the prompt"
            raise InvalidValue("reference", length, least)


def check_method(text: TextPass, method: str, reference: Tensor | None) -> None:
    """Raise ``InputError`` for an unknown method, or a reference that is missing or does not fit the text."""
    if method not in METHODS:
        raise InvalidValue("method", method, "'zero', 'mean', 'text_mean' or 'resample'")
    if method not in NEEDS_REFERENCE:
        return
    config, n = text.config, len(text.ids)
    allowed = f"({config.n_layer}, {1 if method == 'mean' else n}, {config.n_head}, {config.head_dim})"
    if reference is None or str(tuple(reference.shape)) != allowed:
        shape = None if reference is None else tuple(reference.shape)
        raise InvalidValue("reference", shape, f"context vectors of the shape {allowed} for the method {method!r}")


def replacement(text: TextPass, layer: int, method: Method, reference: Tensor | None) -> Tensor:
    """What replaces the context vectors of a removed head in a layer: ``(1, T, n_head, head_dim)``."""
    own = text.context(layer)
    if method == "zero":
        return torch.zeros_like(own)
    if method == "text_mean":
        return own.mean(1, keepdim=True).expand_as(own)
    assert reference is not None, "checked by check_method"
    return reference[layer].to(own).expand_as(own)
