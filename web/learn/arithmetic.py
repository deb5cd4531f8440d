"""The arithmetic behind each number: the terms of dot products and softmaxes, and one number of a served model."""

import torch
from pydantic import Field
from torch import Tensor, nn

from model import InputError, LoadedModel
from model.gpt import Block
from model.ladder.block import (
    BlockStages,
    block_by_ladder,
    block_layers,
    final_norm,
    layer_norm,
    linear,
    normalise,
    part_of_head,
    position_embeddings,
)
from model.ladder.terms import dot_product_terms, softmax_terms

from ..body_types import Unicode
from ..serving.served_models import ServedModels
from .tokenized_sentence import TokenizedSentence, WholeModelRequest, head_and_query, tokenize_sentence

SHOWN_TERMS = 12  # the largest terms of a sum; the others are added up


def dot_terms(a: Tensor, b: Tensor) -> dict[str, object]:
    """The terms of ``a b^T``, for each cell ``[row of a][row of b]``."""
    return {"left": a.tolist(), "right": b.tolist(), "products": dot_product_terms(a, b).tolist()}


def softmax(attn_scores: Tensor) -> dict[str, object]:
    """The terms of a softmax. Minus infinity is sent as null."""
    largest, exponentials, sums = softmax_terms(attn_scores)
    return {
        "scores": attn_scores.tolist(),
        "largest": largest.tolist(),
        "exponentials": exponentials.tolist(),
        "sums": sums.tolist(),
    }


class CellRequest(WholeModelRequest):
    key: int = Field(0, ge=0, le=10**6)


class NumberRequest(WholeModelRequest):
    stage: Unicode = Field("", max_length=20)
    index: int = Field(0, ge=0, le=10**7)


def one_cell(served: ServedModels, request: CellRequest) -> dict[str, object]:
    """The dot product behind one cell of a head."""
    tokenized = tokenize_sentence(served, request)
    layer, head, at = head_and_query(tokenized, request)
    if request.key > at:
        raise InputError("query", f"There is no cell for query {at} and key {request.key}.")
    block = tokenized.loaded.gpt.blocks[layer]
    stages = block_by_ladder(block, tokenized.text_pass.stream[layer][0])
    query, key = (stage[head].float().cpu() for stage in (stages.query, stages.key))
    score = stages.scores[head, at, request.key].item()
    return {
        "query": query[at].tolist(),
        "key": key[request.key].tolist(),
        "products": dot_product_terms(query[at][None], key[request.key][None])[0, 0].tolist(),
        "score": score,
        "scaled": score * block.attn.scale,
        "scale": block.attn.scale,
        "weight": stages.weights[head, at, request.key].item(),
        "model_weight": tokenized.text_pass.attention(layer)[head, at, request.key].item(),
    }


@torch.inference_mode()
def one_number(served: ServedModels, request: NumberRequest) -> dict[str, object]:
    """The terms of number ``index`` of a ``stage`` of the model, for the token at ``query``. Raises ``InputError``."""
    tokenized = tokenize_sentence(served, request)
    layer, head, at = head_and_query(tokenized, request)
    stage = request.stage
    if stage in ("last_norm", "logit", "probability"):
        return Ending(tokenized, at).explain(stage, request.index)
    # The input of a layer is the output of the one before it.
    if stage == "x" and layer > 0:
        layer, stage = layer - 1, "after"
    elif stage == "last_x":
        layer, stage = tokenized.loaded.config.n_layer - 1, "after"
    block = tokenized.loaded.gpt.blocks[layer]
    stages = block_by_ladder(block, tokenized.text_pass.stream[layer][0])
    return InLayer(tokenized.loaded, tokenized.ids, block, stages, head, at).explain(stage, request.index)


def check_index(index: int, size: int) -> None:
    if index >= size:
        raise InputError("index", f"index must be an integer from 0 to {size - 1}, found {index}")


def dot(left: Tensor, right: Tensor, bias: float | None, names: list[str] | None = None) -> dict[str, object]:
    """A dot product: its largest terms in order, the sum of the others, and a bias."""
    left, right = left.float().cpu(), right.float().cpu()
    products = left * right
    shown = products.abs().argsort(descending=True)[:SHOWN_TERMS].sort().values
    rest = products.sum() - products[shown].sum()
    return {
        "kind": "dot",
        "places": shown.tolist(),
        "names": None if names is None else [names[i] for i in shown.tolist()],
        "left": left[shown].tolist(),
        "right": right[shown].tolist(),
        "products": products[shown].tolist(),
        "n": len(products),
        "rest": rest.item() if len(products) > len(shown) else None,
        "bias": bias,
        "total": products.sum().item() + (bias or 0.0),
    }


def layer_output(layer: nn.Module, index: int, x: Tensor) -> dict[str, object]:
    """Output ``index`` of a linear layer. If its weights are quantized, there is no matrix to show."""
    if not isinstance(layer, nn.Linear) or not layer.weight.is_floating_point():
        value = linear(layer, x)
        check_index(index, len(value))
        return {"kind": "value", "total": value[index].item()}
    check_index(index, layer.out_features)
    return dot(x, layer.weight[index], None if layer.bias is None else layer.bias[index].item())


def norm(layer: nn.LayerNorm, x: Tensor, index: int) -> dict[str, object]:
    check_index(index, len(x))
    x = x.float()
    return {
        "kind": "norm",
        "value": x[index].item(),
        "mean": x.mean().item(),
        "deviation": (x.var(correction=0) + layer.eps).sqrt().item(),
        "weight": layer.weight[index].item(),
        "bias": layer.bias[index].item(),
        "total": layer_norm(x, layer.weight.float(), layer.bias.float(), layer.eps)[index].item(),
    }


def added(names: tuple[str, str], first: Tensor, second: Tensor, index: int) -> dict[str, object]:
    check_index(index, len(first))
    terms = [first[index].item(), second[index].item()]
    return {"kind": "sum", "names": list(names), "terms": terms, "total": sum(terms)}


class InLayer:
    """The numbers of one token within a layer."""

    def __init__(
        self, loaded: LoadedModel, ids: list[int], block: Block, stages: BlockStages, head: int, at: int
    ) -> None:
        self.loaded, self.ids, self.block, self.stages, self.head, self.at = loaded, ids, block, stages, head, at

    def explain(self, stage: str, index: int) -> dict[str, object]:
        """Raises ``InputError`` if the stage or the index does not exist."""
        block, at = self.block, self.at
        layers, gpt = block_layers(block), self.loaded.gpt
        of = {name: value[at] for name, value in self.stages._asdict().items() if value.ndim == 2}
        match stage:
            case "token" | "position":
                row = gpt.wte.weight[self.ids[at]] if stage == "token" else position_embeddings(gpt, at, at + 1)[0]
                check_index(index, len(row))
                return {"kind": "weight", "total": row[index].item()}
            case "x":
                token, position = gpt.wte.weight[self.ids[at]], position_embeddings(gpt, at, at + 1)[0]
                return added(("token", "position"), token, position, index)
            case "normed":
                return norm(layers.normed, of["x"], index)
            case "query" | "key" | "value":
                check_index(index, block.attn.head_dim)
                return layer_output(*part_of_head(block, stage, self.head, index), of["normed"])
            case "context":
                return self.averaged(self.head, index)
            case "heads":
                head_dim = block.attn.head_dim
                check_index(index, len(of["heads"]))
                return self.averaged(index // head_dim, index % head_dim) | {"head": index // head_dim}
            case "attended":
                return layer_output(layers.attended, index, of["heads"])
            case "resid_mid":
                return added(("residual stream", "attention"), of["x"], of["attended"], index)
            case "mlp_input":
                return norm(layers.mlp_input, of["resid_mid"], index)
            case "hidden":
                return layer_output(layers.hidden, index, of["mlp_input"])
            case "activated":
                check_index(index, len(of["hidden"]))
                return {"kind": "gelu", "value": of["hidden"][index].item(), "total": of["activated"][index].item()}
            case "mlp_output":
                return layer_output(layers.mlp_output, index, of["activated"])
            case "after":
                return added(("residual stream", "MLP"), of["resid_mid"], of["mlp_output"], index)
        raise InputError("stage", f"There is no stage {stage!r}.")

    def averaged(self, head: int, index: int) -> dict[str, object]:
        """A number of a context vector: each attention weight times that number of the value."""
        check_index(index, self.block.attn.head_dim)
        weights = self.stages.weights[head, self.at, : self.at + 1]
        names = [token.text for token in self.loaded.tokens(self.ids[: self.at + 1])]
        return dot(weights, self.stages.value[head, : self.at + 1, index], None, names)


class Ending:
    """The numbers of one token after all layers."""

    def __init__(self, tokenized: TokenizedSentence, at: int) -> None:
        self.gpt = tokenized.loaded.gpt
        self.x = tokenized.text_pass.stream[-1][0, at]

    def explain(self, stage: str, index: int) -> dict[str, object]:
        gpt = self.gpt
        if stage == "last_norm":
            return norm(final_norm(gpt), self.x, index)
        normed = normalise(final_norm(gpt), self.x)
        if stage == "logit":
            return layer_output(gpt.lm_head, index, normed)
        logits = linear(gpt.lm_head, normed).float()
        check_index(index, len(logits))
        exponentials = (logits - logits.max()).exp()
        return {
            "kind": "share",
            "logit": logits[index].item(),
            "largest": logits.max().item(),
            "exponential": exponentials[index].item(),
            "sum": exponentials.sum().item(),
            "n": len(logits),
            "total": (exponentials[index] / exponentials.sum()).item(),
        }
