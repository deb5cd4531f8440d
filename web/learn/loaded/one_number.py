"""The arithmetic behind one number of a served model."""

from typing import cast

import torch
from torch import Tensor, nn

from model import InputError, LoadedModel
from model.gpt import Block
from model.ladder.block import BlockStages, block_by_ladder, layer_norm, linear
from model.ladder.terms import dot_product_terms

from ...serving.served_models import ServedModels
from ..ask import Ask
from .reading import ReadSentence, check_place, read

SHOWN_TERMS = 12  # of a sum, the largest; what is left of it is added up


def one_cell(served: ServedModels, ask: Ask) -> dict[str, object]:
    """The dot product behind one cell of a head."""
    found = read(served, ask)
    layer, head, at = check_place(found, ask)
    if ask.key > at:
        raise InputError("query", f"There is no cell for query {at} and key {ask.key}.")
    block = cast(Block, found.loaded.gpt.h[layer])
    stages = block_by_ladder(block, found.residuals.stream[layer][0])
    query, key = (stage[head].float().cpu() for stage in (stages.query, stages.key))
    score = stages.scores[head, at, ask.key].item()
    return {
        "query": query[at].tolist(),
        "key": key[ask.key].tolist(),
        "products": dot_product_terms(query[at][None], key[ask.key][None])[0, 0].tolist(),
        "score": score,
        "scaled": score * block.attn.scale,
        "scale": block.attn.scale,
        "weight": stages.weights[head, at, ask.key].item(),
        "model_weight": found.residuals.attention(layer)[head, at, ask.key].item(),
    }


@torch.inference_mode()
def one_number(served: ServedModels, ask: Ask) -> dict[str, object]:
    """The terms of number ``index`` of a ``stage`` of the model, for the token at ``query``. Raises ``InputError``."""
    found = read(served, ask)
    layer, head, at = check_place(found, ask)
    stage = ask.stage
    if stage in ("last_norm", "logit", "probability"):
        return Ending(found, at).explain(stage, ask.index)
    # What a layer is given is what the layer before it has left.
    if stage == "x" and layer > 0:
        layer, stage = layer - 1, "after"
    elif stage == "last_x":
        layer, stage = found.loaded.config.n_layer - 1, "after"
    block = cast(Block, found.loaded.gpt.h[layer])
    stages = block_by_ladder(block, found.residuals.stream[layer][0])
    return InLayer(found.loaded, found.ids, block, stages, head, at).explain(stage, ask.index)


def check_index(index: int, size: int) -> None:
    if index >= size:
        raise InputError("index", f"index must be an integer from 0 to {size - 1}, found {index}")


def dot(left: Tensor, right: Tensor, bias: float | None, names: list[str] | None = None) -> dict[str, object]:
    """A dot product: its largest terms in their order, the sum of the others, and a bias."""
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


def layer_output(layer: nn.Module, x: Tensor, index: int) -> dict[str, object]:
    """Output ``index`` of a linear layer. One whose weights are quantized has no matrix to show."""
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
        """Raises ``InputError`` for a stage or an index that there is not."""
        block, at = self.block, self.at
        mlp = block.mlp
        of = {name: value[at] for name, value in self.stages._asdict().items() if value.ndim == 2}
        match stage:
            case "token" | "position":
                table = self.loaded.gpt.wte if stage == "token" else self.loaded.gpt.wpe
                row = table.weight[self.ids[at] if stage == "token" else at]
                check_index(index, len(row))
                return {"kind": "weight", "total": row[index].item()}
            case "x":
                gpt = self.loaded.gpt
                return added(("token", "position"), gpt.wte.weight[self.ids[at]], gpt.wpe.weight[at], index)
            case "normed":
                return norm(block.ln_1, of["x"], index)
            case "query" | "key" | "value":
                return self.projected(("query", "key", "value").index(stage), index)
            case "context":
                return self.averaged(self.head, index)
            case "heads":
                head_dim = block.attn.head_dim
                check_index(index, len(of["heads"]))
                return self.averaged(index // head_dim, index % head_dim) | {"head": index // head_dim}
            case "attended":
                return layer_output(block.attn.c_proj, of["heads"], index)
            case "middle":
                return added(("residual stream", "attention"), of["x"], of["attended"], index)
            case "normed_again":
                return norm(block.ln_2, of["middle"], index)
            case "hidden":
                return layer_output(mlp.c_fc, of["normed_again"], index)
            case "activated":
                check_index(index, len(of["hidden"]))
                return {"kind": "gelu", "value": of["hidden"][index].item(), "total": of["activated"][index].item()}
            case "thought":
                return layer_output(mlp.c_proj, of["activated"], index)
            case "after":
                return added(("residual stream", "MLP"), of["middle"], of["thought"], index)
        raise InputError("stage", f"There is no stage {stage!r}.")

    def projected(self, part: int, index: int) -> dict[str, object]:
        attn = self.block.attn
        check_index(index, attn.head_dim)
        first = part * attn.n_head * attn.head_dim + self.head * attn.head_dim
        return layer_output(attn.c_attn, self.stages.normed[self.at], first + index)

    def averaged(self, head: int, index: int) -> dict[str, object]:
        """A number of a context vector: each attention weight times that number of the value."""
        check_index(index, self.block.attn.head_dim)
        weights = self.stages.weights[head, self.at, : self.at + 1]
        names = [token.text for token in self.loaded.tokens(self.ids[: self.at + 1])]
        return dot(weights, self.stages.value[head, : self.at + 1, index], None, names)


class Ending:
    """The numbers of one token after all layers."""

    def __init__(self, found: ReadSentence, at: int) -> None:
        self.gpt = found.loaded.gpt
        self.x = found.residuals.stream[-1][0, at]

    def explain(self, stage: str, index: int) -> dict[str, object]:
        gpt = self.gpt
        if stage == "last_norm":
            return norm(gpt.ln_f, self.x, index)
        normed = layer_norm(self.x, gpt.ln_f.weight, gpt.ln_f.bias, gpt.ln_f.eps)
        if stage == "logit":
            return layer_output(gpt.lm_head, normed, index)
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
