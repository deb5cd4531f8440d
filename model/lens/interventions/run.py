"""A forward pass over many texts at once, in which functions see and change activations."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Annotated, Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ...config import check_int
from ...drawing.trace import Trace
from ...errors import InvalidValue
from ...points import Cache, HookChoice, Names, chosen_hooks, find_points
from ..lens import Lens
from ..text_pass import Text


@dataclass(frozen=True, eq=False)
class Run:
    """What a pass over ``B`` texts found; ``T`` is the length of the longest. Shorter texts are padded at their end.

    The logits that predict what follows each text are ``logits[torch.arange(B), lengths - 1]``.
    """

    logits: Annotated[Tensor, "`(B, T, vocab_size)`; 0 after the end of a text."]
    cache: Annotated[Cache, "The activations of the points that were named, `(B, T, ...)`; 0 after the end of a text."]
    lengths: Annotated[Tensor, "`(B,)`: how many tokens each text has."]
    ids: Annotated[Tensor, "`(B, T)`: the tokens."]
    precision: Annotated[str, "That in which the numbers were computed, and that of the weights."]

    def __repr__(self) -> str:
        shapes = [f"{name} {tuple(x.shape)}" for name, x in self.cache.items()]
        more = [f"and {len(shapes) - 20} more"] if len(shapes) > 20 else []
        texts = f"Run of {len(self.ids)} texts of up to {self.ids.shape[1]} tokens, in {self.precision}"
        return "\n  ".join([texts, f"logits {tuple(self.logits.shape)}", *shapes[:20], *more])


def run(
    lens: Lens,
    texts: Text | Sequence[Text],
    *,
    hooks: HookChoice | None = None,
    names: Names = (),
    grad: bool = False,
) -> Run:
    """Read texts in one forward pass, with ``hooks`` that see and change activations.

    ``texts`` is one text or several: strings, token ids as lists, arrays or tensors, or traces, which bring their head
    masks. ``hooks`` gives a function for a point, ``f(tensor, name)``, which returns the tensor to continue with, or
    None to continue with what it was given, which it may change in place. ``names`` are the points whose activations
    are kept, as they are after the hooks. A point is named as in TransformerLens, ``blocks.3.attn.hook_z``; ``*``
    stands for anything, a name without a layer for all layers, and a function of a name chooses those for which it is
    true. With ``grad``, the results keep their graph, in
    which the weights and all activations are. Gradients of weights can only be taken while these require gradients, so
    they still do afterwards: no answer differs, and before you write into a weight, call ``gpt.requires_grad_(False)``.
    Computed in float32. Raises ``InputError`` for a text or a name that the model does not have, and for what a hook
    returns if its shape differs.
    """
    given = as_texts(texts)
    rows = [lens.parse(text) for text in given]
    if not rows:
        raise InvalidValue("texts", "no text", "at least one")
    gpt, masks = lens.gpt, [text.head_mask if isinstance(text, Trace) else None for text in given]
    head_mask = None
    if any(mask is not None for mask in masks):
        whole = torch.ones(gpt.config.n_layer, gpt.config.n_head, device=gpt.device)
        head_mask = torch.stack([whole if mask is None else mask.to(whole) for mask in masks], 1)
    lengths = torch.tensor(list(map(len, rows)), device=gpt.device)
    ids = pad_sequence([torch.tensor(row, device=gpt.device) for row in rows], batch_first=True)
    is_read = torch.arange(ids.shape[1], device=gpt.device) < lengths[:, None]
    is_padded = bool((lengths < ids.shape[1]).any())
    cache = Cache(gpt.config)

    def without_padding(x: Tensor, name: str) -> Tensor:
        """``x`` with 0 after the end of each text; no token before it depends on what is there."""
        if not is_padded:
            return x
        heads_first = name.endswith(("attn_scores", "pattern"))
        read = is_read[:, None, :, None] if heads_first else is_read.view(*is_read.shape, *[1] * (x.dim() - 2))
        return x.masked_fill(~read, 1 if name.endswith("scale") else 0)  # 1, because a scale is divided by

    def keep(x: Tensor, name: str) -> Tensor:
        cache[name] = without_padding(x, name)
        return cache[name]

    functions = chosen_hooks(gpt.config, hooks).with_hook(find_points(gpt.config, names), keep)
    if grad:
        gpt.requires_grad_()
    with torch.inference_mode(False), torch.set_grad_enabled(grad):
        logits = gpt(ids, head_mask=head_mask, hooks=functions).logits
        return Run(without_padding(logits, "logits"), cache, lengths, ids, lens.precision)


def activations(lens: Lens, text: Text, sites: Names, layers: Sequence[int] | None = None) -> dict[str, Tensor]:
    """The activations of one text at the named points, of all layers or of ``layers``, as ``/v1/activations`` sends
    them.

    Points are named as in ``run``. Shapes are those of TransformerLens's cache of one text: ``blocks.3.attn.hook_z`` is
    ``(T, n_head, head_dim)``, a pattern ``(n_head, T, T)``. Raises ``InputError`` for a point or a layer that the model
    does not have.
    """
    names = find_points(lens.gpt.config, sites, "sites")
    if layers is not None:
        for layer in layers:
            check_int("layers", layer, lens.gpt.config.n_layer - 1, least=0)
        names = [name for layer in layers for name in names if name.startswith(f"blocks.{layer}.")]
        if not names:
            raise InvalidValue("sites", sites, "a point of the given layers")
    found = run(lens, [text], names=names).cache
    return Cache(lens.gpt.config, {name: found[name][0].cpu() for name in names})


def as_texts(texts: Any) -> list[Text]:
    """One text or several as a list. Token ids of one text are a flat list, array or tensor."""
    if isinstance(texts, str | Trace) or getattr(texts, "ndim", 2) == 1:
        return [texts]
    several = list(texts)
    return [several] if several and all(is_id(each) for each in several) else several


def is_id(value: object) -> bool:
    return isinstance(value, Integral) or getattr(value, "ndim", 1) == 0
