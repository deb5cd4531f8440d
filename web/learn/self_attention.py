"""Rungs 4 to 6 as data: averages of the past, and self-attention without and with trainable weights."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from model import ladder
from model.ladder.terms import (
    largest_difference,
    naive_terms,
    scaled_softmax,
    seeded,
    spread_terms,
    weights_of_random_query,
)

from ..serving.served_models import ServedModels
from .arithmetic import dot_terms, softmax
from .lesson_request import LessonRequest, Matrix, StrictRequest, TwoHeadsRequest, check_sentence
from .sentence import SIZE, parse_sentence
from .two_heads import two_heads

TOY = 3  # tokens of the toy example
# Scores from Karpathy's lecture, which multiplies them to sharpen their softmax.
DIFFUSE = (0.1, -0.2, 0.3, -0.2, 0.5)
KEYS_OF_ONE_QUERY = 12
SPREAD_TOKENS = 256  # enough for the variance to be close to its expectation
CURVE_DIMS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
D_OUT = 2
READER_SCALE = 256**-0.5  # a reader's version uses it, although its queries have 2 numbers
PROJECTIONS = ("query", "key", "value")
Projection = Literal["query", "key", "value"]


class AveragesRequest(LessonRequest):
    lecture: bool = True
    scores: Matrix | None = None  # what the visitor has put in place of the zeros, ignored for another number of tokens
    toy: Literal["ones", "tril", "normalised"] = "normalised"


class SelfAttentionRequest(LessonRequest):
    factor: float = Field(1.0, ge=-1000, le=1000)
    swapped: bool = False  # whether two words have changed places


class TrainableWeightsRequest(TwoHeadsRequest):
    kind: Literal["parameters", "linear", "reader", "reader_linear"] = "parameters"
    matrices: dict[Projection, Matrix] | None = None  # replacements for W query, W key and W value


class TransferRequest(LessonRequest):
    transfer: dict[Projection, Literal["own", "reshaped", "transposed"]] = Field(default_factory=dict)


class ScaleRequest(StrictRequest):
    head_dim: int = Field(16, ge=1, le=1024)
    sharpness: float = Field(1.0, ge=1, le=16)
    seed: int = Field(1, ge=0, le=10**9)


def averages_of_the_past(served: ServedModels, request: AveragesRequest) -> dict[str, object]:
    """The average of the past, three ways, and the toy product of Karpathy's lecture."""
    check_sentence(request.sentence)
    if request.lecture:
        x = seeded(1337, lambda: torch.randn(4, 8, 2))[0]
        data: dict[str, object] = {"words": [f"t{t}" for t in range(len(x))], "note": ""}
    else:
        sentence = parse_sentence(served, request)
        x, data = sentence.x, sentence.data
    by_loop = ladder.average_by_loop(x)
    by_matrix, by_softmax = ladder.average_by_matrix(x), ladder.average_by_softmax(x)
    weights = ladder.average_by_matrix(torch.eye(len(x)))
    scores = scores_in_place_of_zeros(len(x), request.scores)
    masked = ladder.mask_future(scores)
    softmax_weights = ladder.average_by_softmax(torch.eye(len(x)), scores)
    return data | {
        "lecture": request.lecture,
        "x": x.tolist(),
        "weights": weights.tolist(),
        "masked": masked.tolist(),
        "edited_scores": int(scores.count_nonzero()),
        "softmax_weights": softmax_weights.tolist(),
        "softmax_weight_terms": softmax(masked),
        "by_loop": by_loop.tolist(),
        "by_matrix": by_matrix.tolist(),
        "by_softmax": ladder.average_by_softmax(x, scores).tolist(),
        "terms": dot_terms(weights, x.mT),
        "softmax_terms": dot_terms(softmax_weights, x.mT),
        "error": max(largest_difference(by_loop, by_matrix), largest_difference(by_loop, by_softmax)),
        "toy": toy(request.toy),
    }


def scores_in_place_of_zeros(n_tokens: int, given: list[list[float]] | None) -> Tensor:
    """The visitor's scores ``(T, T)``, zero in the future, which is masked anyway."""
    scores = torch.zeros(n_tokens, n_tokens)
    if given and len(given) == n_tokens and all(len(row) == n_tokens for row in given):
        scores = torch.tensor(given).tril()
    return scores


def toy(kind: str) -> dict[str, object]:
    """The product ``a b`` of the lecture's toy example, with ``a`` of ones, lower triangular, or with rows of sum 1."""
    ones = torch.ones(TOY, TOY)
    a = {"ones": ones, "tril": ones.tril(), "normalised": ladder.sum_normalise(ones.tril())}[kind]
    b = seeded(42, lambda: torch.randint(0, 10, (TOY, 2))).float()
    return {"kind": kind, "a": a.tolist(), "b": b.tolist(), "product": (a @ b).tolist(), "terms": dot_terms(a, b.mT)}


def without_weights(served: ServedModels, request: SelfAttentionRequest) -> dict[str, object]:
    """Rung 5: self-attention without weights; a ``factor`` on the scores can make the naive softmax fail."""
    sentence = parse_sentence(served, request)
    order, pair = order_of_words(sentence.words, is_swapped=request.swapped)
    x = sentence.x[order]
    scores, weights, context = ladder.attention_without_weights(x)
    in_first_order = ladder.attention_without_weights(sentence.x).context
    larger, naive, stable = scaled_softmax(scores, request.factor)
    exponentials, sums = naive_terms(larger)
    return sentence.data | {
        "words": [sentence.words[i] for i in order],
        "x": x.tolist(),
        "pair": pair,
        "swapped": request.swapped and pair is not None,
        "order_error": largest_difference(context, in_first_order[order]),
        "scores": scores.tolist(),
        "score_terms": dot_terms(x, x),
        "loop_error": largest_difference(ladder.scores_by_loop(x, x), scores),
        "sums": scores.sum(dim=-1).tolist(),
        "sum_normalised": ladder.sum_normalise(scores).tolist(),
        "negative": bool((scores < 0).any()),
        "weights": weights.tolist(),
        "weight_terms": softmax(scores),
        "context": context.tolist(),
        "context_terms": dot_terms(weights, x.mT),
        "factor": request.factor,
        "extreme": max(larger.flatten().tolist(), key=abs),
        "larger": larger.tolist(),
        "naive": naive.tolist(),
        "naive_terms": {"exponentials": exponentials.tolist(), "sums": sums.tolist()},
        "stable": stable.tolist(),
        "stable_terms": softmax(larger),
        "error": largest_difference(ladder.naive_softmax(scores), weights),
    }


def order_of_words(words: list[str], *, is_swapped: bool) -> tuple[list[int], tuple[int, int] | None]:
    """The order in which the words are read, and the two that can be swapped: the second and the last, or both of two.

    Punctuation marks stay in place.
    """
    order = list(range(len(words)))
    spoken = [i for i in order if any(character.isalnum() for character in words[i])]
    if len(spoken) < 2:
        return order, None
    i, j = spoken[min(1, len(spoken) - 2)], spoken[-1]
    if is_swapped:
        order[i], order[j] = j, i
    return order, (i, j)


def make_matrices(kind: str) -> dict[str, Tensor]:
    """W query, W key and W value, ``(3, 2)`` each, by the recipes of the book and of a reader's version of it."""
    if kind == "parameters":
        v1 = seeded(123, lambda: ladder.SelfAttentionV1(SIZE, D_OUT))
        return {name: getattr(v1, f"W_{name}").detach() for name in PROJECTIONS}
    if kind == "linear":
        v2 = seeded(789, lambda: ladder.SelfAttentionV2(SIZE, D_OUT))
        return {name: getattr(v2, f"W_{name}").weight.detach().T for name in PROJECTIONS}
    order = ("key", "query", "value")  # the reader draws the keys first
    if kind == "reader":
        return seeded(123, lambda: {name: torch.randn(SIZE, D_OUT) for name in order})
    made = seeded(123, lambda: {name: nn.Linear(SIZE, D_OUT, bias=False) for name in order})
    return {name: layer.weight.detach().T for name, layer in made.items()}


def with_trainable_weights(served: ServedModels, request: TrainableWeightsRequest) -> dict[str, object]:
    """Rung 6: self-attention with trainable weights: the book's, a reader's, or set by the visitor."""
    sentence = parse_sentence(served, request)
    x = sentence.x
    drawn = make_matrices(request.kind)
    given = {name: torch.tensor(matrix) for name, matrix in (request.matrices or {}).items()}
    matrices: dict[str, Tensor] = drawn | {name: m for name, m in given.items() if m.shape == (SIZE, D_OUT)}
    is_reader = request.kind.startswith("reader")
    scale = READER_SCALE if is_reader else D_OUT**-0.5
    query, key, value = (x @ matrices[name] for name in PROJECTIONS)
    asking, asked = (key, query) if is_reader else (query, key)  # the reader has swapped the two
    scores = asking @ asked.T
    weights = ladder.stable_softmax(scores * scale)
    context = weights @ value
    layers = seeded(789, lambda: ladder.SelfAttentionV2(SIZE, D_OUT))
    parameters = seeded(123, lambda: ladder.SelfAttentionV1(SIZE, D_OUT))
    ladder.transfer_weights(layers, parameters)
    with torch.inference_mode():
        error = largest_difference(parameters(x), layers(x))
    return sentence.data | {
        "kind": request.kind,
        "matrices": {name: matrices[name].tolist() for name in PROJECTIONS},
        "set": [name for name in PROJECTIONS if not torch.equal(matrices[name], drawn[name])],
        "projections": {name: dot_terms(x, matrices[name].T) for name in PROJECTIONS},
        "query": query.tolist(),
        "key": key.tolist(),
        "value": value.tolist(),
        "scale": scale,
        "scores": scores.tolist(),
        "score_terms": dot_terms(asking, asked),
        "weights": weights.tolist(),
        "weight_terms": softmax(scores * scale),
        "context": context.tolist(),
        "context_terms": dot_terms(weights, value.mT),
        "trained": two_heads(served, request),
        "random": [random_head(x, kind) for kind in ("parameters", "linear")],
        **(wide(x) if is_reader else {"wide": None}),
        "error": error,
    }


def random_head(x: Tensor, kind: str) -> dict[str, object]:
    """The attention weights of a head with random matrices, and their terms."""
    matrices = make_matrices(kind)
    query, key = x @ matrices["query"], x @ matrices["key"]
    scores = query @ key.T * D_OUT**-0.5
    return {
        "weights": ladder.stable_softmax(scores).tolist(),
        "score_terms": dot_terms(query, key),
        "weight_terms": softmax(scores),
    }


def wide(x: Tensor) -> dict[str, object]:
    """The attention weights of a reader's version with 256 numbers in a query, the size that its scale fits."""
    key, query, _ = seeded(123, lambda: [torch.randn(SIZE, 256) for _ in range(3)])
    scores = (x @ key) @ (x @ query).T * READER_SCALE
    return {"wide": ladder.stable_softmax(scores).tolist(), "wide_terms": softmax(scores)}


def transferred_weights(served: ServedModels, request: TransferRequest) -> dict[str, object]:
    """Rung 6, an exercise: copy the weights of linear layers into parameters, reshaped or transposed."""
    x = parse_sentence(served, request).x
    layers = seeded(789, lambda: ladder.SelfAttentionV2(SIZE, D_OUT))
    parameters = seeded(123, lambda: ladder.SelfAttentionV1(SIZE, D_OUT))
    state = {}
    for name in PROJECTIONS:
        stored = getattr(layers, f"W_{name}").weight
        own = getattr(parameters, f"W_{name}")
        ways = {"own": own, "reshaped": stored.reshape(SIZE, D_OUT), "transposed": stored.T}
        state[f"W_{name}"] = ways[request.transfer.get(name, "own")]  # type: ignore[call-overload]
    parameters.load_state_dict(state)
    with torch.inference_mode():
        return {
            "stored": {name: getattr(layers, f"W_{name}").weight.tolist() for name in PROJECTIONS},
            "matrices": {name: getattr(parameters, f"W_{name}").tolist() for name in PROJECTIONS},
            "error": largest_difference(parameters(x), layers(x)),
        }


def scaled_scores(request: ScaleRequest) -> dict[str, object]:
    """Rung 6: why scores are scaled, shown on random queries and keys, and what sharpens a softmax."""
    generator = torch.Generator()
    curve = []
    for head_dim in sorted({*CURVE_DIMS, request.head_dim}):
        unscaled, scaled = ladder.scale_demonstration(head_dim, SPREAD_TOKENS, generator.manual_seed(request.seed))
        curve.append({"head_dim": head_dim, "unscaled": unscaled._asdict(), "scaled": scaled._asdict()})
    raw_scores, raw, divided = weights_of_random_query(
        request.head_dim, KEYS_OF_ONE_QUERY, generator.manual_seed(request.seed)
    )
    terms = spread_terms(request.head_dim, SPREAD_TOKENS, generator.manual_seed(request.seed))
    diffuse = torch.tensor(DIFFUSE)
    sharp = diffuse * request.sharpness
    return {
        "head_dim": request.head_dim,
        "spread_terms": {name: each._asdict() for name, each in zip(("unscaled", "scaled"), terms, strict=True)},
        "at": next(point for point in curve if point["head_dim"] == request.head_dim),
        "curve": [point for point in curve if point["head_dim"] in CURVE_DIMS],
        "unscaled": raw.tolist(),
        "unscaled_terms": softmax(raw_scores[None]),
        "scaled": divided.tolist(),
        "scaled_terms": softmax(raw_scores[None] * request.head_dim**-0.5),
        "sharpness": request.sharpness,
        "diffuse": DIFFUSE,
        "softmax": ladder.stable_softmax(sharp).tolist(),
        "softmax_terms": softmax(sharp[None]),
    }
