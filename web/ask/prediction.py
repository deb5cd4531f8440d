"""Questions about predictions: the parts of a logit, what a head takes from each token, the logit lens, the ledger."""

from typing import Any, Literal

from pydantic import BaseModel
from pydantic import Field as Described

from model.errors import InvalidValue
from model.lens.attribution import attention_at, attribution, logits_at
from model.lens.ledger import ledger
from model.lens.logit_lens import logit_lens
from model.lens.one_head import head_measures
from model.lens.progress import Progress

from ..settings import Limits
from .question import HEAD, HEAD_MASK, LAYER, MODEL, PROMPT, Field, NamedToken, ProbableToken, Question, TextAnswer
from .service import Answer, Inquiry

ALTERNATIVES = 6  # the number of most probable tokens in an answer, which a client may ask about next
LIKELIEST = "likeliest"  # a value of `against`: the most probable token other than `token`
MAX_TOP = 20

POSITION = Field(
    "position",
    "The token after which the next one is predicted, counted from 0; the last by default.",
    int,
    default=None,
    below="n_tokens",
)
TOKEN = Field(
    "token", "The id of the next token; the most probable one by default.", int, default=None, below="vocab_size"
)


class PredictionAnswer(TextAnswer):
    position: int
    token: NamedToken = Described(description="The next token whose logit is explained.")
    logit: float = Described(description="The token's logit, as the model computes it.")
    probability: float = Described(description="The token's probability, as the model computes it.")


def position_of(inquiry: Inquiry, name: str = "position") -> int:
    position = inquiry.values[name]
    return len(inquiry.ids) - 1 if position is None else int(position)


def token_of(inquiry: Inquiry, position: int) -> int:
    token = inquiry.values["token"]
    return int(logits_at(inquiry.text, position).argmax()) if token is None else int(token)


def named(inquiry: Inquiry, token: int) -> dict[str, Any]:
    return inquiry.loaded.tokens([token])[0]._asdict()


def most_probable(inquiry: Inquiry, position: int) -> list[dict[str, Any]]:
    """The most probable next tokens, in descending order."""
    top = logits_at(inquiry.text, position).softmax(-1).topk(min(ALTERNATIVES, inquiry.loaded.config.vocab_size))
    tokens = inquiry.loaded.tokens(top.indices.tolist())
    return [{**token._asdict(), "probability": p} for token, p in zip(tokens, top.values.tolist(), strict=True)]


# ---- What adds to a logit --------------------------------------------------------------------------------------------


class AttributionAnswer(PredictionAnswer):
    against: NamedToken | None
    alternatives: list[ProbableToken] = Described(description="The most probable next tokens at this position.")
    heads: list[list[float]] = Described(description="`[layer][head]`, including the value biases.")
    mlps: list[float] = Described(description="`[layer]`, including the output biases.")
    embedding: float = Described(description="The part of the token and position embeddings.")
    biases: float = Described(
        description="The part of the biases of attention's output projections and the final layer norm."
    )
    sum: float = Described(description="The sum of all parts; equals `logit` up to rounding.")
    difference: float = Described(description="`sum` minus `logit`.")


def answer_attribution(inquiry: Inquiry, _progress: Progress) -> Answer:
    position, against = position_of(inquiry), inquiry.values["against"]
    token = token_of(inquiry, position)
    alternatives = most_probable(inquiry, position)
    if against == LIKELIEST:
        against = next((one["id"] for one in alternatives if one["id"] != token), None)
    found = attribution(inquiry.text, position=position, token=token, against=against)
    return {
        "position": position,
        "token": named(inquiry, found.token),
        "against": None if against is None else named(inquiry, against),
        "alternatives": alternatives,
        "logit": found.logit,
        "probability": found.probability,
        "heads": found.heads.numpy(),
        "mlps": found.mlps.numpy(),
        "embedding": found.embedding,
        "biases": found.biases,
        "sum": found.total,
        "difference": found.error,
    }


ATTRIBUTION = Question(
    "attribution",
    "What each head and MLP, the embedding and the biases of a model add to the logit of a next token, with the "
    "scale of "
    "the final layer norm held fixed.",
    [
        PROMPT,
        MODEL,
        POSITION,
        TOKEN,
        Field(
            "against",
            "Another token's id, or `likeliest` for the most probable other token: the parts are then those of "
            "the difference "
            "between the two logits.",
            int | Literal["likeliest"],
            default=None,
            below="vocab_size",
        ),
        HEAD_MASK,
    ],
    "The logit and the parts that add up to it.",
    AttributionAnswer,
    answer_attribution,
)


# ---- What one head takes from each token -----------------------------------------------------------------------------


class KeyMeasures(NamedToken):
    position: int
    weight: float = Described(description="The attention weight.")
    norm: float = Described(description="The norm of weight * value * W_O (Kobayashi et al. 2020).")
    attribution: float = Described(description="What that vector adds to the logit.")
    loss_change: float = Described(description="In nats, when this weight is set to 0 and the others are unchanged.")


class HeadSums(BaseModel):
    weight: float
    norm: float = Described(description="The norm of the sum of the vectors, which may cancel.")
    attribution: float = Described(description="What the head adds to the logit.")
    loss_change: float = Described(description="The sum over all edges, each cut on its own.")


class Correlation(BaseModel):
    measures: tuple[str, str]
    spearman: float | None = Described(description="The rank correlation over the keys; null where it is undefined.")


class WithoutHead(BaseModel):
    loss_change: float = Described(
        description="The change for this token in nats, with the head removed at all positions."
    )
    text_loss_change: float | None = Described(description="The change for the text, in nats per predicted token.")


class HeadAnswer(PredictionAnswer):
    layer: int
    head: int
    keys: list[KeyMeasures]
    sums: HeadSums
    correlations: list[Correlation] = Described(
        description="For all pairs of measures. Paired with a weight or a norm, a signed measure is taken by its "
        "magnitude."
    )
    without_head: WithoutHead


KEY_MEASURES = ("weight", "norm", "attribution", "loss_change")


def answer_head(inquiry: Inquiry, progress: Progress) -> Answer:
    layer, head, position = inquiry.values["layer"], inquiry.values["head"], position_of(inquiry)
    token = token_of(inquiry, position)
    found = head_measures(inquiry.text, layer=layer, head=head, position=position, token=token, progress=progress)
    measures = zip(*(getattr(found, name).tolist() for name in KEY_MEASURES), strict=True)
    tokens = inquiry.loaded.tokens(inquiry.ids[: position + 1])
    keys = [
        {"position": i, **token._asdict(), **dict(zip(KEY_MEASURES, values, strict=True))}
        for i, (token, values) in enumerate(zip(tokens, measures, strict=True))
    ]
    return {
        "layer": layer,
        "head": head,
        "position": position,
        "token": named(inquiry, token),
        "logit": found.logit,
        "probability": found.probability,
        "keys": keys,
        "sums": {
            "weight": float(found.weight.sum()),
            "norm": found.output_norm,
            "attribution": float(found.attribution.sum()),
            "loss_change": float(found.loss_change.sum()),
        },
        "correlations": [{"measures": pair, "spearman": value} for pair, value in found.correlations().items()],
        "without_head": {"loss_change": found.removed.token, "text_loss_change": found.removed.text},
    }


ONE_HEAD = Question(
    "head",
    "What one head takes from each token for one prediction, in four measures.",
    [PROMPT, MODEL, LAYER, HEAD, POSITION, TOKEN, HEAD_MASK],
    "For each key its attention weight, value-weighted norm, part of the logit, and the change of the loss when that "
    "edge is cut; the sums and rank correlations of these measures; and the change of the loss without the head.",
    HeadAnswer,
    answer_head,
    endpoint_name="head_lenses",
)


# ---- What each layer would have predicted ----------------------------------------------------------------------------


class Reading(ProbableToken):
    kl: float = Described(description="KL(the model's prediction || this reading), in nats.")
    answer: float = Described(description="The probability that this reading gives to the model's most probable token.")
    top: list[ProbableToken]


class LogitLensAnswer(TextAnswer):
    layers: list[list[Reading]] = Described(
        description="`[n_layer + 1][position]`: after the embeddings, then after each layer."
    )
    decided: list[int] = Described(
        description="`[position]`: the earliest entry of `layers` from which the most probable token stays the same."
    )


def n_top(inquiry: Inquiry) -> int:
    return int(min(inquiry.values["top"], inquiry.loaded.config.vocab_size))


def check_logit_lens(inquiry: Inquiry, limits: Limits) -> None:
    top = n_top(inquiry)
    n_tokens = (inquiry.loaded.config.n_layer + 1) * len(inquiry.ids) * top
    if n_tokens > limits.max_json_weights:
        sent = f"these are {n_tokens:,} tokens, and at most {limits.max_json_weights:,} are sent"
        raise InvalidValue("top", top, f"smaller for this text: {sent}")


def answer_logit_lens(inquiry: Inquiry, progress: Progress) -> Answer:
    found = logit_lens(inquiry.text, k=n_top(inquiry), progress=progress)
    texts = {token.id: token.text for token in inquiry.loaded.tokens(found.ids.flatten().unique().tolist())}
    layers = []
    rows = zip(found.ids.tolist(), found.probabilities.numpy(), found.kl.numpy(), found.answer.numpy(), strict=True)
    for ids, probabilities, kl, answer in rows:
        readings = []
        for t, chosen in enumerate(ids):
            top = [
                {"id": token, "text": texts[token], "probability": p}
                for token, p in zip(chosen, probabilities[t], strict=True)
            ]
            readings.append({**top[0], "kl": kl[t], "answer": answer[t], "top": top})
        layers.append(readings)
    return {"layers": layers, "decided": found.decided.numpy()}


LOGIT_LENS = Question(
    "logit-lens",
    "What each layer of a model would have predicted at each position if it had been the last.",
    [
        PROMPT,
        MODEL,
        Field("top", "How many of the most probable tokens to name.", int, default=5, least=1, most=MAX_TOP),
        HEAD_MASK,
    ],
    "After the embeddings and after each layer, for each position: the most probable tokens, and the KL divergence of "
    "the model's prediction from this one, in nats.",
    LogitLensAnswer,
    answer_logit_lens,
    check_logit_lens,
)


# ---- The arithmetic of one cell --------------------------------------------------------------------------------------


class LedgerErrors(BaseModel):
    weights: float = Described(description="In the row of attention weights, compared with the model's own.")
    context: float = Described(description="In the context vector, compared with the model's own.")
    logit: float = Described(
        description="In the sum of the head's part and the rest, compared with the model's own logit."
    )


class LedgerAnswer(TextAnswer):
    """Vectors have ``head_dim`` numbers; rows have one number for each key up to the query."""

    layer: int
    head: int
    position: tuple[int, int] = Described(description="The positions of the query and the key.")
    token: NamedToken
    query: list[float]
    key: list[float]
    products: list[float]
    score: float
    scale: float
    n_masked: int = Described(description="The number of later tokens, whose scores are minus infinity.")
    scaled: list[float] = Described(description="The row of scores, scaled.")
    largest: float
    exponentials: list[float]
    denominator: float
    weights: list[float]
    mask: float = Described(description="The head mask's factor; 1 without one.")
    value: list[float]
    weighted: list[float]
    context: list[float]
    reading: list[float] = Described(
        description="What a 1 in each component of the context vector would add to the logit."
    )
    terms: list[float]
    part: float = Described(description="What this key adds to the logit.")
    parts: list[float] = Described(description="What each key adds to the logit.")
    head_part: float
    rest: float = Described(description="What everything but this head adds to the logit.")
    logit: float
    probability: float
    errors: LedgerErrors


def check_ledger(inquiry: Inquiry, _limits: Limits) -> None:
    query, key = position_of(inquiry, "query"), inquiry.values["key"]
    if key is not None and key > query:
        raise InvalidValue("key", key, f"an integer from 0 to {query}, the position of the query")


def answer_ledger(inquiry: Inquiry, _progress: Progress) -> Answer:
    layer, head, key = (inquiry.values[name] for name in ("layer", "head", "key"))
    query = position_of(inquiry, "query")
    if key is None:
        key = int(attention_at(inquiry.text, layer, query).weights[head].argmax())
    token = token_of(inquiry, query)
    found = ledger(inquiry.text, layer=layer, head=head, query=query, key=key, token=token)._asdict()
    numbers = {name: value.numpy() if hasattr(value, "numpy") else value for name, value in found.items()}
    return {"layer": layer, "head": head, "position": [query, key], "token": named(inquiry, token), **numbers}


LEDGER = Question(
    "ledger",
    "Every number between one query, one key of a head and the logit of the next token.",
    [
        PROMPT,
        MODEL,
        LAYER,
        HEAD,
        Field(
            "query",
            "The position of the query, counted from 0; the last by default.",
            int,
            default=None,
            below="n_tokens",
        ),
        Field(
            "key",
            "The position of the key; by default the one with the largest attention weight.",
            int,
            default=None,
            below="n_tokens",
        ),
        TOKEN,
        HEAD_MASK,
    ],
    "The vectors, products, sums, the softmax and the parts of the logit, and how far they are from the model's own.",
    LedgerAnswer,
    answer_ledger,
    check_ledger,
)
