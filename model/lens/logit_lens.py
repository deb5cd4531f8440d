"""The logit lens: what each layer would predict if it were the last."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, TypedDict

import torch
from torch import Tensor

from ..config import MAX_VOCAB_SIZE, check_int
from ..drawing.heat_map import Part, labels
from .answer import Answer, IsToken, ProbableToken, Shape
from .progress import Progress, ignore
from .question import Reads, Within
from .text_pass import LOGITS_AT_ONCE, TextPass

MAX_SENT = 20  # of the most probable tokens


class LayerPrediction(ProbableToken):
    kl: Annotated[float, "KL(the model's prediction || this one), in nats."]
    answer: Annotated[float, "The probability that it gives to `token`, by default the model's most probable one."]
    top: list[ProbableToken]


class LogitLensContent(TypedDict):
    layers: Annotated[
        list[list[LayerPrediction]], "`[n_layer + 1][position]`: after the embeddings, then after each layer."
    ]
    decided: Annotated[
        Tensor,
        Shape(("T",), whole=True),
        "`[position]`: the earliest entry of `layers` from which the most probable token stays the same.",
    ]


READINGS = ("n_layer + 1", "T")


@dataclass(frozen=True)
class LogitLens(Answer):
    """After the embeddings and after each layer, for each position: the most probable tokens, and the KL divergence
    of the model's prediction from this one, in nats.

    The predictions of ``n_layer + 1`` readings at each of ``T`` positions, on the CPU.

    Reading 0 is of the embeddings, reading ``i`` of the residual stream after layer ``i - 1``; the last one is the
    model's own answer.
    """

    ids: Annotated[
        Tensor, Shape((*READINGS, "k"), whole=True), IsToken(), "The most probable next tokens, most probable first."
    ]
    probabilities: Annotated[Tensor, Shape((*READINGS, "k")), "Those of `ids`."]
    kl: Annotated[Tensor, Shape(READINGS), "KL(the model's prediction || this one), in nats."]
    answer: Annotated[Tensor, Shape(READINGS), "The probability of `token`, by default the model's most probable one."]
    decided: Annotated[
        Tensor,
        Shape(("T",), whole=True),
        "The earliest reading from which the most probable token stays the model's.",
    ]

    @property
    def summary(self) -> str:
        best, probability = self.token_texts(int(self.ids[-1, -1, 0])), float(self.probabilities[-1, -1, 0])
        since = labels("n_layer + 1", len(self.ids), ())[int(self.decided[-1])]
        return f"The most probable next token is {best}, at {probability:.3f}; it is the most probable {since}."

    def drawn(self) -> Iterator[Part]:
        """The most probable token of each reading, by position, and the numbers about it."""
        yield Part("most probable", self.token_texts(self.ids[..., 0]), READINGS)
        yield Part("probability", self.probabilities[..., 0], READINGS)
        yield Part("kl", self.kl, READINGS, "KL(the model's prediction || this one), in nats.")
        yield Part("answer", self.answer, READINGS, "The probability of the token in question.")
        names = labels("n_layer + 1", len(self.ids), ())
        yield Part("decided", [names[reading] for reading in self.decided.tolist()], ("T",))

    def content(self) -> LogitLensContent:
        tokens = {token["id"]: token for token in self.named(self.ids.unique().tolist())}
        layers: list[list[LayerPrediction]] = []
        rows = zip(self.ids.tolist(), self.probabilities.numpy(), self.kl.numpy(), self.answer.numpy(), strict=True)
        for ids, probabilities, kl, answer in rows:
            readings: list[LayerPrediction] = []
            for t, chosen in enumerate(ids):
                named = zip(chosen, probabilities[t], strict=True)
                top: list[ProbableToken] = [{**tokens[token_id], "probability": p} for token_id, p in named]
                readings.append({**top[0], "kl": kl[t], "answer": answer[t], "top": top})
            layers.append(readings)
        return {"layers": layers, "decided": self.decided}


@torch.no_grad()
def logit_lens(
    text: TextPass,
    *,
    top: Annotated[int, Within(1, MAX_SENT), "How many of the most probable tokens to name."] = 5,
    token: Annotated[
        str | int | None,
        Reads.TOKEN,
        "The token whose probability is given as `answer`; by default the model's most probable at each position.",
    ] = None,
    progress: Progress = ignore,
) -> LogitLens:
    """What each layer of a model would have predicted at each position if it had been the last.

    Read a distribution over the next token from the residual stream before and after every layer.

    The stream goes through the final norm and the output head, which were trained for the last layer alone
    (nostalgebraist 2020, "interpreting GPT: the logit lens"). ``kl`` is KL(answer || reading), the nats that the
    reading loses on tokens drawn from the model's own answer; the last is 0.
    """
    check_int("top", top, MAX_VOCAB_SIZE)
    given = text.token_id(token)
    if given is not None:
        check_int("token", given, text.config.vocab_size - 1, least=0)
    T = len(text.ids)
    n_readings = len(text.stream)
    k = min(top, text.config.vocab_size)
    ids = torch.empty(n_readings, T, k, dtype=torch.long)
    probabilities, kl, answer = torch.empty(n_readings, T, k), torch.empty(n_readings, T), torch.empty(n_readings, T)
    rows = max(1, LOGITS_AT_ONCE // text.config.vocab_size)
    for start in range(0, T, rows):
        span = slice(start, min(start + rows, T))
        final = reading_logprobs(text, n_readings - 1, span)
        final_probabilities = final.exp()
        asked = final.topk(1).indices if given is None else torch.full((len(final), 1), given, device=final.device)
        for i in range(n_readings):
            logprobs = final if i == n_readings - 1 else reading_logprobs(text, i, span)
            likeliest = logprobs.topk(k)
            ids[i, span], probabilities[i, span] = likeliest.indices.cpu(), likeliest.values.exp().cpu()
            # A token that the answer gives a probability of 0 adds nothing, regardless of the reading.
            lost = (final - logprobs).where(final_probabilities > 0, 0) * final_probabilities
            kl[i, span] = lost.sum(-1).clamp(min=0).cpu()
            answer[i, span] = logprobs.gather(-1, asked)[:, 0].exp().cpu()
            progress((start + (span.stop - start) * (i + 1) / n_readings) / T)
    return LogitLens(ids, probabilities, kl, answer, decided_at(ids[..., 0]))


def reading_logprobs(text: TextPass, reading: int, span: slice) -> Tensor:
    """The log-probabilities ``(n, vocab_size)`` of a reading at the positions of ``span``."""
    return text.gpt.logits(text.stream[reading][0, span]).log_softmax(-1)


def decided_at(most_probable: Tensor) -> Tensor:
    """The earliest of the readings ``(n, T)`` from which the token stays the same as in the last one, ``(T,)``."""
    differs = most_probable != most_probable[-1]
    places = torch.arange(1, len(most_probable) + 1)[:, None]
    return (differs * places).amax(0)
