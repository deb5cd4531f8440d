"""The source code that a rung shows, read from the files so that it is always current."""

import ast
import inspect
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from model import ladder, sampling
from model.gpt import GPT
from model.ladder import bpe, loss_ladder
from model.lens.composition import pair_scores

ROOT = Path(__file__).parents[2]

# The classes and functions that compute each rung, in reading order, by the name that the browser requests.
DEFINITIONS: dict[str, list[Callable[..., object]]] = {
    "tokens": [
        ladder.WordTokenizer,
        ladder.CharacterTokenizer,
        ladder.learn_merges,
        bpe.merge_pair,
        bpe.BytePairEncoding.merge_words,
    ],
    "windows": [ladder.sliding_windows, ladder.TokenAndPositionEmbedding],
    "untrained-bigram": [ladder.BigramModel, ladder.train_bigram, ladder.counted_bigram_loss],
    "averages": [ladder.average_by_loop, ladder.average_by_matrix, ladder.average_by_softmax, ladder.mask_future],
    "self-attention": [
        ladder.attention_without_weights,
        ladder.scores_by_loop,
        ladder.sum_normalise,
        ladder.naive_softmax,
        ladder.stable_softmax,
    ],
    "trainable-weights": [
        ladder.SelfAttention,
        ladder.SelfAttentionV1,
        ladder.SelfAttentionV2,
        ladder.transfer_weights,
        ladder.scale_demonstration,
    ],
    "causal-masking": [
        ladder.causal_by_renormalising,
        ladder.causal_by_minus_infinity,
        ladder.drop_weights,
        ladder.CausalAttention,
    ],
    "many-heads": [
        ladder.StackedHeads,
        ladder.WeightSplits,
        ladder.split_heads,
        ladder.merge_heads,
        ladder.transfer_heads,
        ladder.product_batched,
        ladder.product_head_by_head,
    ],
    "block": [
        ladder.layer_norm,
        ladder.gelu,
        ladder.block_by_ladder,
        loss_ladder.GrowingModel,
        loss_ladder.train_one,
        ladder.train_bigram,
    ],
    "draw": [sampling.sample, sampling.probabilities, sampling.keep_top_k, sampling.keep_top_p],
    "induction": [ladder.read_twice, ladder.TwiceRead.mean_weight, ladder.scores_without, pair_scores],
    "whole-model": [ladder.MultiHeadAttention, ladder.pack_weight_splits, ladder.block_by_ladder, GPT.forward],
}
COMPILED = "compiled"  # the loops that write on a CPU; rung 10 shows them
LOOPS = {"model.kernels.attention": "attend", "model.kernels.functions": "exponentials"}


@cache
def sources(name: str) -> list[dict[str, object]]:
    """The ``name``, ``file``, first ``line`` and ``code`` of each class or function behind ``name``."""
    if name == COMPILED:
        return [loop(module, function) for module, function in LOOPS.items()]
    pieces: list[dict[str, object]] = []
    for shown in DEFINITIONS[name]:
        undecorated = inspect.unwrap(shown)
        lines, first = inspect.getsourcelines(undecorated)
        file = Path(inspect.getsourcefile(undecorated) or "").relative_to(ROOT)
        code = inspect.cleandoc("\n" + "".join(lines))
        pieces.append({"name": shown.__qualname__, "file": file.as_posix(), "line": first, "code": code})
    return pieces


def loop(module: str, name: str) -> dict[str, object]:
    """The source of a compiled function. Its module is not imported here: the engines decide when to compile it."""
    spec = find_spec(module)
    file = Path(spec.origin if spec and spec.origin else "")
    text = file.read_text(encoding="utf-8")
    (function,) = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == name)
    first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
    code = "\n".join(text.splitlines()[first - 1 : function.end_lineno])
    return {"name": name, "file": file.relative_to(ROOT).as_posix(), "line": first, "code": code}
