"""Models of transformers under names that are the same for all families, and hooks into them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Hook = Callable[..., Any]


class Theirs:
    """A model of transformers under names that are the same for all families."""

    def __init__(self, gpt: "PreTrainedModel") -> None:
        self.gpt = gpt
        self.is_neox = gpt.config.model_type == "gpt_neox"
        self.body = gpt.gpt_neox if self.is_neox else gpt.model
        self.norm = self.body.final_layer_norm if self.is_neox else self.body.norm
        self.head = gpt.get_output_embeddings()
        self.embedding = gpt.get_input_embeddings()
        config = gpt.config
        self.n_layer, self.n_head = config.num_hidden_layers, config.num_attention_heads
        self.n_kv_head = getattr(config, "num_key_value_heads", self.n_head)
        self.size = getattr(config, "head_dim", None) or config.hidden_size // self.n_head

    def layer(self, layer: int) -> Any:
        return self.body.layers[layer]

    def attention(self, layer: int) -> Any:
        return self.layer(layer).attention if self.is_neox else self.layer(layer).self_attn

    def output(self, layer: int) -> Any:
        """The output projection of attention, whose input are the context vectors."""
        return self.attention(layer).dense if self.is_neox else self.attention(layer).o_proj

    def span(self, head: int) -> slice:
        return slice(head * self.size, (head + 1) * self.size)

    def part(self, layer: int, which: str, x: Tensor) -> Tensor:
        """Queries, keys or values of the normed stream before any rotation: ``(T, heads, head_dim)``."""
        attention = self.attention(layer)
        if self.is_neox:
            fused = attention.query_key_value(x).unflatten(-1, (self.n_head, 3, self.size))
            return fused[..., "qkv".index(which), :]
        return getattr(attention, f"{which}_proj")(x).unflatten(-1, (-1, self.size))

    def weight(self, layer: int, which: str, head: int) -> Tensor:
        """The weight of one query head's queries, keys or values, ``(head_dim, C)``."""
        attention = self.attention(layer)
        if self.is_neox:
            fused = attention.query_key_value.weight.unflatten(0, (self.n_head, 3, self.size))
            return fused[head, "qkv".index(which)]
        of = head if which == "q" else head * self.n_kv_head // self.n_head
        return getattr(attention, f"{which}_proj").weight[self.span(of)]

    def __call__(self, ids: list[int], **options: Any) -> Any:
        return self.gpt(torch.tensor([ids]), **options)

    def losses(self, ids: list[int]) -> Tensor:
        logits = self(ids).logits[0, :-1]
        return torch.nn.functional.cross_entropy(logits, torch.tensor(ids[1:]), reduction="none")

    def part_of_logit(self, stream: Tensor, added: Tensor, token: int) -> float:
        """The part of a vector in the logit: the final norm with the divisor of the whole stream."""
        if self.is_neox:
            normal = (added - added.mean()) / (stream.var(correction=0) + self.norm.eps).sqrt()
        else:
            normal = added / (stream.square().mean() + self.norm.variance_epsilon).sqrt()
        return float(self.head.weight[token] @ (normal * self.norm.weight))


@contextmanager
def hooked(module: Any, hook: Hook, before: bool = False) -> Iterator[None]:
    register = module.register_forward_pre_hook if before else module.register_forward_hook
    handle = register(hook)
    try:
        yield
    finally:
        handle.remove()


def inputs_of(theirs: Theirs, modules: dict[str, Any], ids: list[int]) -> dict[str, Tensor]:
    """The first inputs of these modules, without the batch."""
    found: dict[str, Tensor] = {}
    handles = [
        module.register_forward_pre_hook(lambda _module, given, name=name: found.__setitem__(name, given[0][0]))
        for name, module in modules.items()
    ]
    theirs(ids)
    for handle in handles:
        handle.remove()
    return found


def contexts(theirs: Theirs, ids: list[int]) -> dict[str, Tensor]:
    return inputs_of(theirs, {str(layer): theirs.output(layer) for layer in range(theirs.n_layer)}, ids)


def replacing(span: slice, value: Tensor) -> Hook:
    """A hook that replaces part of the input, ``(T, size)``."""

    def hook(_module: object, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        changed = given[0].clone()
        changed[..., span] = value
        return (changed,)

    return hook
