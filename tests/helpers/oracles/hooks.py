"""Models of transformers under names that are the same for all families, and hooks into them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch
from torch import Tensor

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Hook = Callable[..., Any]


class Names(NamedTuple):
    """What transformers calls the parts of a model, and those of a layer; by default, as in Llama."""

    body: str = "model"
    final: str = "norm"
    layers: str = "layers"
    norm_1: str = "input_layernorm"
    norm_2: str = "post_attention_layernorm"
    attention: str = "self_attn"
    output: str = "self_attn.o_proj"  # attention's last product
    mlp: str = "mlp"  # empty if its products are parts of the layer
    first: str = "mlp.gate_proj"  # product of the MLP, or its gate
    last: str = "mlp.down_proj"
    # Of queries, keys and values, or one of all.
    projections: tuple[str, ...] = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
    post_1: str = ""  # the norms after attention and after the MLP, if there are any
    post_2: str = ""


GPT2 = Names(
    body="transformer",
    final="ln_f",
    layers="h",
    norm_1="ln_1",
    norm_2="ln_2",
    attention="attn",
    output="attn.c_proj",
    first="mlp.c_fc",
    last="mlp.c_proj",
    projections=("attn.c_attn",),
)
AFTER = {"post_1": "post_attention_layernorm", "post_2": "post_feedforward_layernorm"}
NAMES = {
    "gemma3_text": Names(norm_2="pre_feedforward_layernorm", **AFTER),
    "olmo2": Names(norm_1="", norm_2="", **AFTER),
    "gpt2": GPT2,
    "gpt_neo": GPT2._replace(
        output="attn.attention.out_proj",
        projections=("attn.attention.q_proj", "attn.attention.k_proj", "attn.attention.v_proj"),
    ),
    "opt": Names(
        body="model.decoder",
        final="final_layer_norm",
        norm_1="self_attn_layer_norm",
        norm_2="final_layer_norm",
        output="self_attn.out_proj",
        mlp="",
        first="fc1",
        last="fc2",
    ),
    "gpt_neox": Names(
        body="gpt_neox",
        final="final_layer_norm",
        attention="attention",
        output="attention.dense",
        first="mlp.dense_h_to_4h",
        last="mlp.dense_4h_to_h",
        projections=("attention.query_key_value",),
    ),
}


def names_of(gpt: "PreTrainedModel") -> Names:
    return NAMES.get(gpt.config.model_type, Names())


class Theirs:
    """A model of transformers under names that are the same for all families (but GPT-2, which stores transposes)."""

    def __init__(self, gpt: "PreTrainedModel") -> None:
        self.gpt, self.names = gpt, names_of(gpt)
        self.body = gpt.get_submodule(self.names.body)
        self.norm = self.body.get_submodule(self.names.final)
        self.is_fused = len(self.names.projections) == 1
        self.is_centred = isinstance(self.norm, torch.nn.LayerNorm)
        self.scale = getattr(gpt.config, "query_pre_attn_scalar", self.size_of(gpt.config)) ** -0.5
        self.scale = 1.0 if gpt.config.model_type == "gpt_neo" else self.scale
        self.head = gpt.get_output_embeddings()
        self.embedding = gpt.get_input_embeddings()
        config = gpt.config
        self.n_layer, self.n_head = config.num_hidden_layers, config.num_attention_heads
        self.n_kv_head = getattr(config, "num_key_value_heads", self.n_head)
        self.size = self.size_of(config)

    @staticmethod
    def size_of(config: Any) -> int:
        return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads

    def layer(self, layer: int) -> Any:
        return self.body.get_submodule(f"{self.names.layers}.{layer}")

    def part_of(self, layer: int, name: str) -> Any:
        """A part of a layer by its name in ``Names``; a norm that it lacks does nothing."""
        theirs = getattr(self.names, name)
        return self.layer(layer).get_submodule(theirs) if theirs else torch.nn.Identity()

    def output(self, layer: int) -> Any:
        """The output projection of attention, whose input are the context vectors."""
        return self.part_of(layer, "output")

    def projections(self, layer: int) -> list[Any]:
        return [self.layer(layer).get_submodule(name) for name in self.names.projections]

    def projection(self, layer: int, which: str) -> Any:
        """What computes the queries, the keys or the values."""
        return self.projections(layer)[0 if self.is_fused else "qkv".index(which)]

    def embedded(self, ids: list[int]) -> Tensor:
        """Embeddings of tokens and, if they are learned, of positions, ``(T, C)``."""
        tokens: Tensor = self.embedding(torch.as_tensor(ids))
        return tokens if self.positions is None else tokens + self.positions[: len(ids)]

    @property
    def positions(self) -> Tensor | None:
        """The embeddings of positions, if they are learned."""
        table = getattr(self.body, "wpe", getattr(self.body, "embed_positions", None))
        return None if table is None else table.weight[getattr(table, "offset", 0) :]

    def mlp(self, layer: int, x: Tensor) -> Tensor:
        """The MLP's output, before any norm."""
        if self.names.mlp:
            return cast(Tensor, self.part_of(layer, "mlp")(x))
        activated = self.layer(layer).activation_fn(self.part_of(layer, "first")(x))
        return cast(Tensor, self.part_of(layer, "last")(activated))

    @staticmethod
    def gain(norm: Any) -> Tensor:
        """What a norm multiplies by."""
        if isinstance(norm, torch.nn.Identity):
            return torch.ones(())
        return norm.weight + 1 if "Gemma" in type(norm).__name__ else norm.weight

    def gained(self, norm: Any, x: Tensor) -> Tensor:
        """A norm without its bias and its division."""
        return (x - x.mean(-1, keepdim=True) if self.is_centred else x) * self.gain(norm).to(x)

    def divisor(self, norm: Any, x: Tensor) -> Tensor:
        if isinstance(norm, torch.nn.Identity):
            return torch.ones(())
        x = x - x.mean(-1, keepdim=True) if self.is_centred else x
        eps = norm.variance_epsilon if hasattr(norm, "variance_epsilon") else norm.eps
        return (x.square().mean(-1, keepdim=True) + eps).sqrt()

    def adds(self, layer: int, part: Tensor, context: Tensor | None = None) -> Tensor:
        """What a part of attention's output adds to the stream, with the scale at ``context`` of a norm after it."""
        norm = self.part_of(layer, "post_1")
        gained = part * self.gain(norm).to(part)
        return gained if context is None else gained / self.divisor(norm, self.output(layer)(context))

    def span(self, head: int) -> slice:
        return slice(head * self.size, (head + 1) * self.size)

    def part(self, layer: int, which: str, x: Tensor) -> Tensor:
        """Queries, keys or values of the normed stream before any rotation: ``(T, heads, head_dim)``."""
        projected = self.projection(layer, which)(x)
        if self.is_fused:
            return projected.unflatten(-1, (self.n_head, 3, self.size))[..., "qkv".index(which), :]
        return projected.unflatten(-1, (-1, self.size))

    def weight(self, layer: int, which: str, head: int) -> Tensor:
        """The weight of one query head's queries, keys or values, ``(head_dim, C)``."""
        weight = self.projection(layer, which).weight
        if self.is_fused:
            return weight.unflatten(0, (self.n_head, 3, self.size))[head, "qkv".index(which)]
        return weight[self.span(head if which == "q" else head * self.n_kv_head // self.n_head)]

    def __call__(self, ids: list[int], **options: Any) -> Any:
        return self.gpt(torch.tensor([ids]), **options)

    def losses(self, ids: list[int]) -> Tensor:
        logits = self(ids).logits[0, :-1]
        return torch.nn.functional.cross_entropy(logits, torch.tensor(ids[1:]), reduction="none")

    def part_of_logit(self, stream: Tensor, added: Tensor, token: int) -> float:
        """The part of a vector in the logit: the final norm with the divisor of the whole stream."""
        normal = self.gained(self.norm, added) / self.divisor(self.norm, stream)
        return float(self.head.weight[token] @ normal)


@contextmanager
def hooked(module: Any, hook: Hook, before: bool = False) -> Iterator[None]:
    register = module.register_forward_pre_hook if before else module.register_forward_hook
    handle = register(hook)
    try:
        yield
    finally:
        handle.remove()


def inputs_of(theirs: Theirs, modules: dict[str, Any], ids: list[int]) -> dict[str, Tensor]:
    """The first inputs of these modules, ``(T, C)``."""
    found: dict[str, Tensor] = {}
    handles = [
        module.register_forward_pre_hook(lambda _module, x, name=name: found.__setitem__(name, x[0].flatten(0, -2)))
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
