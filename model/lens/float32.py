"""The weights of a model as it is served, converted for computation in float32."""

from dataclasses import replace

import torch
from torch import Tensor

from ..checkpoint.weights import gpt_on_meta
from ..errors import InputError
from ..gpt import GPT
from ..seams.torch import has_hooks
from .text_pass import TextPass


@torch.inference_mode(False)  # gradients are taken through the copy
@torch.no_grad()
def in_float32(gpt: GPT) -> GPT:
    """A float32 GPT with the weights of ``gpt``: the same object if it is already in float32.

    Rounded weights stay rounded: bfloat16 is only widened, and an int8 weight becomes its integer times its scale. Only
    the arithmetic differs from ``gpt``, so the analyses explain the weights that are served. The copy shares every
    tensor that is already float32. An int8 output head is no longer tied to the embeddings, which were not rounded.
    """
    weights = float32_weights(gpt)
    own = {name: tensor for name, tensor in gpt.state_dict(keep_vars=True).items() if name in weights}
    if len(own) == len(weights) and all(tensor is own[name] for name, tensor in weights.items()):
        return gpt
    tied = gpt.lm_head.weight is gpt.wte.weight
    copy = gpt_on_meta(replace(gpt.config, tie_word_embeddings=tied))
    copy.load_state_dict(weights, assign=True)
    copy.tie_weights()  # the assignment untied them
    return copy.eval().requires_grad_(False)


@torch.inference_mode(False)
@torch.no_grad()
def refresh(copy: GPT, gpt: GPT) -> None:
    """Give ``copy``, which ``in_float32`` made of ``gpt``, the weights that ``gpt`` has at this moment."""
    own = copy.state_dict(keep_vars=True)
    scales = {name: getattr(module, "scale", None) for name, module in gpt.named_modules()}
    for name, tensor in gpt.state_dict(keep_vars=True).items():
        if name in own and own[name].data_ptr() != tensor.data_ptr():
            own[name].copy_(tensor)
            layer, _, kind = name.rpartition(".")
            if kind == "weight" and (scale := scales.get(layer)) is not None:
                own[name].mul_(scale[:, None])


def in_words(computed: torch.dtype, served: GPT) -> str:
    """The precision in which numbers were computed, and that of the weights if it is another one."""
    names = [str(dtype).removeprefix("torch.") for dtype in (computed, served.lm_head.weight.dtype)]
    return names[0] if names[0] == names[1] else f"{names[0]} with weights in {names[1]}"


def check_unhooked(gpt: GPT) -> None:
    """Raise ``InputError`` if a module has a hook of torch's, which would reach some computations and not others."""
    for name, module in gpt.named_modules():
        if has_hooks(module):
            message = f"gpt.{name} has a hook of torch's, which not every computation would see: give it to run, trace "
            raise InputError("hooks", message + "or generate as hooks={name of a point: function}, and remove it.")


def float32_weights(gpt: GPT) -> dict[str, Tensor]:
    """The weights of ``gpt`` under the names of a GPT without int8 layers."""
    weights: dict[str, Tensor] = {}
    widened: dict[int, Tensor] = {}  # by the id of the original tensor: a tied one has two names
    scales = {name: getattr(module, "scale", None) for name, module in gpt.named_modules()}
    for name, tensor in gpt.state_dict(keep_vars=True).items():
        layer, _, kind = name.rpartition(".")
        scale = scales.get(layer)
        if scale is None or kind == "bias":
            weights[name] = widened[id(tensor)] = widened.get(id(tensor), tensor).float()  # itself if already float32
        elif kind == "weight":
            weights[name] = tensor.float() * scale[:, None]
    return weights


def float32_bytes(gpt: GPT) -> int:
    """How many bytes ``in_float32(gpt)`` takes in addition to ``gpt``: 0 if it is already in float32."""
    scales = {id(getattr(module, "scale", None)) for module in gpt.modules()}
    own = {id(tensor): tensor for tensor in [*gpt.parameters(), *gpt.buffers()]}
    narrow = sum(own[key].numel() for key in own.keys() - scales if own[key].dtype != torch.float32)
    # Layers that share the weights of the compiled loops create their weight tensors on access.
    return 4 * (narrow + sum(getattr(module, "n_made", 0) for module in gpt.modules()))


def served_difference(gpt: GPT, text: TextPass) -> float:
    """How much the precision of ``gpt`` changes a text: the largest change of any token's log-probability, in nats.

    ``text`` is the pass in float32; 0 for a text of one token.
    """
    served = TextPass(gpt, text.ids, text.head_mask).logprobs()
    return max((abs(one - other) for one, other in zip(served, text.logprobs(), strict=True)), default=0.0)
