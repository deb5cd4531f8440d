"""Activations of a text as a safetensors file, computed layer by layer and sent in pieces."""

import json
from collections.abc import Callable, Iterator, Sequence

from torch import Tensor

from model import LoadedModel
from model.gpt import GPT
from model.lens.interventions.sites import Site, layer_activations, n_components
from model.lens.text_pass import TextPass
from model.points import WEIGHTS

from .attention_answer import HEAP_GROWTH, REQUEST_BYTES, TOKEN_BYTES, in_binary, safetensors_header

NAMES = "TransformerLens 3.9, weights as published"  # whose names, shapes and values the tensors have
LAYER_COPIES = 3  # how many times the activations of a layer are held while it is computed


class ActivationsAnswer:
    """The activations of some sites, layers and positions as the body of a response, in float32.

    ``gpt`` makes the model in float32 when the answer is begun. Tensors have the names, shapes and values of
    TransformerLens's cache, for a single text: ``blocks.3.attn.hook_z`` is ``(positions, n_head, head_dim)``, a pattern
    ``(n_head, positions, T)``.
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
        if site.hook in WEIGHTS:
            return [config.n_head, n, len(self.ids)]
        if site.name.endswith("scale"):
            return [n, 1]
        if site.component == "neuron":
            return [n, config.inner_dim]
        if site.component is None:
            return [n, config.n_embd]
        return [n, n_components(site, config), config.n_embd if site.name == "result" else config.head_dim]

    @property
    def held_bytes(self) -> int:
        """Bytes held while the client reads: the residual stream and what a layer computes."""
        config, T = self.loaded.config, len(self.ids)
        stream = (config.n_layer + 1) * T * config.n_embd
        layer = T * (8 * config.n_embd + 2 * config.inner_dim + 4 * config.n_head * config.head_dim)
        layer += config.n_head * T * (T + (config.n_embd if "result" in [site.name for site in self.sites] else 0))
        return int(HEAP_GROWTH * 4 * (stream + LAYER_COPIES * layer) + T * TOKEN_BYTES) + REQUEST_BYTES

    def safetensors(self) -> Iterator[bytes]:
        """The header, then the tensors of one layer after the other."""
        shapes = {f"blocks.{layer}.{site.hook}": self.shape(site) for layer in self.layers for site in self.sites}
        yield safetensors_header(shapes, self.metadata())
        text = TextPass(self.gpt(), self.ids, self.head_mask)
        for layer in self.layers:
            for site, x in zip(self.sites, layer_activations(text, layer, self.sites), strict=True):
                chosen = x[0, :, self.positions] if site.hook in WEIGHTS else x[0, self.positions]
                yield from in_binary(chosen.float().cpu().contiguous().numpy())

    def metadata(self) -> dict[str, str]:
        tokens = [token._asdict() for token in self.loaded.tokens(self.ids)]
        return {
            "model": self.loaded.name,
            "tokens": json.dumps(tokens),
            "positions": json.dumps(self.positions),
            "names": NAMES,
        }
