"""Activations of a text as a safetensors file, computed layer by layer and sent in pieces."""

import json
from collections.abc import Callable, Iterator, Sequence

from torch import Tensor

from model import LoadedModel
from model.gpt import GPT
from model.lens.interventions.sites import Site, layer_activations, of_one_text
from model.lens.text_pass import TextPass

from .attention_answer import HEAP_GROWTH, REQUEST_BYTES, TOKEN_BYTES, in_binary, safetensors_header

LAYER_COPIES = 3  # how many times the activations of a layer are held while it is computed


class ActivationsAnswer:
    """The activations of some sites, layers and positions as the body of a response, in float32.

    ``gpt`` makes the model in float32 when the answer is begun. Tensors have the names and shapes of TransformerLens's
    cache, for a single text: ``blocks.3.attn.hook_z`` is ``(positions, n_head, head_dim)``, a pattern
    ``(n_head, positions, T)``. Keys and values of heads that share them are repeated, and rotary positions are applied.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        gpt: Callable[[], GPT],
        ids: list[int],
        sites: Sequence[Site],
        layers: list[int],
        positions: list[int],
        head_mask: Tensor | None,
    ) -> None:
        self.loaded, self.gpt, self.ids, self.head_mask = loaded, gpt, ids, head_mask
        self.sites, self.layers, self.positions = sites, layers, positions

    def shape(self, site: Site) -> list[int]:
        config, n = self.loaded.config, len(self.positions)
        match site.name:
            case "pattern":
                return [config.n_head, n, len(self.ids)]
            case "q" | "k" | "v" | "z":
                return [n, config.n_head, config.head_dim]
            case "mlp_post":
                return [n, config.inner_dim]
        return [n, config.n_embd]

    @property
    def held_bytes(self) -> int:
        """Bytes held while the client reads: the residual stream and what a layer computes."""
        config, T = self.loaded.config, len(self.ids)
        stream = (config.n_layer + 1) * T * config.n_embd
        layer = T * (8 * config.n_embd + 2 * config.inner_dim + 4 * config.n_head * config.head_dim)
        layer += config.n_head * T**2
        return int(HEAP_GROWTH * 4 * (stream + LAYER_COPIES * layer) + T * TOKEN_BYTES) + REQUEST_BYTES

    def safetensors(self) -> Iterator[bytes]:
        """The header, then the tensors of one layer after the other."""
        shapes = {f"blocks.{layer}.{site.hook}": self.shape(site) for layer in self.layers for site in self.sites}
        yield safetensors_header(shapes, self.metadata())
        text = TextPass(self.gpt(), self.ids, self.head_mask)
        for layer in self.layers:
            by_site = layer_activations(text, layer)
            for site in self.sites:
                x = of_one_text(site, by_site[site.name][:, self.positions])
                yield from in_binary(x.contiguous().numpy())

    def metadata(self) -> dict[str, str]:
        tokens = [token._asdict() for token in self.loaded.tokens(self.ids)]
        return {"model": self.loaded.name, "tokens": json.dumps(tokens), "positions": json.dumps(self.positions)}
