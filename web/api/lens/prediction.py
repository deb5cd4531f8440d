"""Answers to the questions about one predicted token."""

from collections.abc import Iterable
from typing import Any

from model import LoadedModel
from model.config import check_int
from model.errors import InvalidValue
from model.lens.questions.attribution import attribution
from model.lens.questions.ledger import ledger
from model.lens.questions.logit_lens import logit_lens
from model.lens.questions.one_head import head_measures
from model.lens.questions.progress import Progress
from model.lens.questions.query import attention_at, logits_at

from ...questions.service import Answer, Asked
from ...settings import Limits
from .prediction_schema import AttributionBody, HeadBody, LedgerBody, LogitLensBody

Parameters = dict[str, Any]
ALTERNATIVES = 6  # tokens, to choose from what to ask about next
LIKELIEST = "likeliest"  # for `against`: the most probable token but the one that is asked about
MEASURES = ("weight", "norm", "attribution", "loss_change")


def check_index(name: str, value: int | None, count: int) -> None:
    if value is not None:
        check_int(name, value, count - 1, least=0)


def read_prediction(
    loaded: LoadedModel, ids: list[int], body: AttributionBody | HeadBody, position: int | None
) -> Parameters:
    """The position and the token, checked; without a token the answer is about the most probable one."""
    check_index("position", position, len(ids))
    check_index("token", body.token, loaded.config.vocab_size)
    return {"position": len(ids) - 1 if position is None else position, "token": body.token}


def read_attribution(_limits: Limits, loaded: LoadedModel, ids: list[int], body: AttributionBody) -> Parameters:
    if not isinstance(body.against, str):
        check_index("against", body.against, loaded.config.vocab_size)
    return read_prediction(loaded, ids, body, body.position) | {"against": body.against}


def read_head(_limits: Limits, loaded: LoadedModel, ids: list[int], body: HeadBody) -> Parameters:
    check_index("layer", body.layer, loaded.config.n_layer)
    check_index("head", body.head, loaded.config.n_head)
    return read_prediction(loaded, ids, body, body.position) | {"layer": body.layer, "head": body.head}


def read_logit_lens(limits: Limits, loaded: LoadedModel, ids: list[int], body: LogitLensBody) -> Parameters:
    top = min(5 if body.top is None else body.top, loaded.config.vocab_size)
    n_tokens = (loaded.config.n_layer + 1) * len(ids) * top
    if n_tokens > limits.max_json_weights:
        allowed = (
            f"smaller for this text: these are {n_tokens:,} tokens, and at most {limits.max_json_weights:,} are sent"
        )
        raise InvalidValue("top", top, allowed)
    return {"top": top}


def read_ledger(_limits: Limits, loaded: LoadedModel, ids: list[int], body: LedgerBody) -> Parameters:
    check_index("layer", body.layer, loaded.config.n_layer)
    check_index("head", body.head, loaded.config.n_head)
    check_index("query", body.query, len(ids))
    query = len(ids) - 1 if body.query is None else body.query
    if body.key is not None and not 0 <= body.key <= query:
        raise InvalidValue("key", body.key, f"an integer from 0 to {query}, the position of the query")
    check_index("token", body.token, loaded.config.vocab_size)
    return {"layer": body.layer, "head": body.head, "query": query, "key": body.key, "token": body.token}


def chosen_token(asked: Asked, position: int) -> int:
    token = asked.parameters["token"]
    return int(logits_at(asked.text, position).argmax()) if token is None else int(token)


def named(asked: Asked, token: int) -> dict[str, Any]:
    return asked.loaded.tokens([token])[0]._asdict()


def most_probable(asked: Asked, position: int) -> list[dict[str, Any]]:
    top = logits_at(asked.text, position).softmax(-1).topk(min(ALTERNATIVES, asked.loaded.config.vocab_size))
    tokens = asked.loaded.tokens(top.indices.tolist())
    return [{**token._asdict(), "probability": p} for token, p in zip(tokens, top.values.tolist(), strict=True)]


def answer_attribution(asked: Asked, _progress: Progress) -> Answer:
    position, against = asked.parameters["position"], asked.parameters["against"]
    token = chosen_token(asked, position)
    if against == LIKELIEST:
        against = next((one["id"] for one in most_probable(asked, position) if one["id"] != token), None)
    found = attribution(asked.text, position=position, token=token, against=against)
    return {
        "position": position,
        "token": named(asked, found.token),
        "against": None if against is None else named(asked, against),
        "alternatives": most_probable(asked, position),
        "logit": found.logit,
        "probability": found.probability,
        "heads": found.heads.numpy(),
        "mlps": found.mlps.numpy(),
        "embedding": found.embedding,
        "biases": found.biases,
        "sum": found.total,
        "difference": found.error,
    }


def answer_head(asked: Asked, progress: Progress) -> Answer:
    layer, head, position = (asked.parameters[name] for name in ("layer", "head", "position"))
    token = chosen_token(asked, position)
    found = head_measures(asked.text, layer=layer, head=head, position=position, token=token, progress=progress)
    measures = zip(*(getattr(found, name).tolist() for name in MEASURES), strict=True)
    tokens = asked.loaded.tokens(asked.ids[: position + 1])
    keys = [
        {"position": i, **token._asdict(), **dict(zip(MEASURES, values, strict=True))}
        for i, (token, values) in enumerate(zip(tokens, measures, strict=True))
    ]
    return {
        "layer": layer,
        "head": head,
        "position": position,
        "token": named(asked, token),
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


def answer_logit_lens(asked: Asked, progress: Progress) -> Answer:
    found = logit_lens(asked.text, k=asked.parameters["top"], progress=progress)
    names = texts_of(asked.loaded, found.ids.flatten().unique().tolist())

    def probable(token: int, probability: float) -> dict[str, Any]:
        return {"id": token, "text": names[token], "probability": probability}

    layers = []
    rows = zip(found.ids.tolist(), found.probabilities.numpy(), found.kl.numpy(), found.answer.numpy(), strict=True)
    for ids, probabilities, kl, answer in rows:
        readings = []
        for t, chosen in enumerate(ids):
            top = [probable(token, p) for token, p in zip(chosen, probabilities[t], strict=True)]
            readings.append({**top[0], "kl": kl[t], "answer": answer[t], "top": top})
        layers.append(readings)
    return {"layers": layers, "decided": found.decided.numpy()}


def texts_of(loaded: LoadedModel, ids: Iterable[int]) -> dict[int, str]:
    return {token.id: token.text for token in loaded.tokens(list(ids))}


def answer_ledger(asked: Asked, _progress: Progress) -> Answer:
    layer, head, query, key = (asked.parameters[name] for name in ("layer", "head", "query", "key"))
    if key is None:
        key = int(attention_at(asked.text, layer, query).weights[head].argmax())
    token = chosen_token(asked, query)
    found = ledger(asked.text, layer=layer, head=head, query=query, key=key, token=token)._asdict()
    numbers = {name: value.numpy() if hasattr(value, "numpy") else value for name, value in found.items()}
    return {"layer": layer, "head": head, "position": [query, key], "token": named(asked, token), **numbers}
