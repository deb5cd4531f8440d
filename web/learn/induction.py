"""Rung 11 as data: a phrase and its repetition, read by a model at each step of its training that was kept."""

import torch
from pydantic import Field

from model import InputError, LoadedModel
from model.ladder import TwiceRead, read_twice, scores_without
from model.ladder.terms import largest_difference
from model.lens.composition import composition
from model.lens.text_pass import TextPass
from model.modules.head_tensors import Head

from ..serving.served_models import ServedModels
from ..serving.snapshots import NoSnapshot, Snapshots
from .lesson_request import LayerAndHead, LessonRequest
from .tokenized_sentence import TokenizedSentence, tokenize_sentence

MIN_PHRASE, MAX_PHRASE = 3, 20  # tokens: with fewer there is nothing to repeat, with more the pictures are too small


class InductionRequest(LessonRequest):
    step: int | None = Field(None, ge=0, le=10**9)  # of the training; if None, the last one that was kept
    muted: LayerAndHead | None = None


def induction(snapshots: Snapshots, request: InductionRequest) -> dict[str, object]:
    """How the induction head forms in training, and its score and the loss without another head."""
    name, note = choose_model(snapshots, request.model)
    # Whatever is refused is refused before any step is opened.
    tokenized = tokenize_phrase(snapshots.served, request, name)
    phrase, config = tokenized.ids, tokenized.loaded.config
    if request.muted and (request.muted[0] >= config.n_layer or request.muted[1] >= config.n_head):
        raise InputError("muted", f"{name} has no head {request.muted[1]} in layer {request.muted[0]}.")
    steps = snapshots.steps_on_disk(name)
    step = steps[-1] if steps and request.step is None else request.step
    if steps and step not in steps:
        raise NoSnapshot(step, steps)

    def open_step(step: int | None) -> LoadedModel:
        return snapshots.get(name, step) if steps else tokenized.loaded

    # One after another: all steps together may be larger than what is kept in memory.
    read_at: list[int | None] = [*steps] or [step]
    by_step = {each: read_twice(open_step(each).gpt, phrase) for each in read_at}
    last, shown = open_step(read_at[-1]), open_step(step)
    readings, read = list(by_step.values()), by_step[step]
    layer, head = strongest(readings[-1].induction)
    without = scores_without(last.gpt, phrase, layer, head)  # (layer, n_head)
    fed_by = strongest(-without) if layer else None
    scores = composition(last.gpt)
    feeding = scores.scores["k"][layer][head]  # (layer, n_head)
    muted = read_twice(shown.gpt, phrase, [request.muted]) if request.muted else read
    return {
        "note": " ".join(filter(None, [note, tokenized.note])),
        "model": name,
        "sha256": shown.sha256,
        "n_layer": config.n_layer,
        "n_head": config.n_head,
        "ids": phrase * 2,
        "tokens": [token.text for token in shown.tokens(phrase * 2)],
        "n": len(phrase),
        "step": step if steps else None,
        "steps": steps,
        "head": (layer, head),
        "fed_by": fed_by,
        "muted": request.muted,
        "curve": [
            {
                "induction": row.induction[layer, head].item(),
                "previous_token": row.previous_token[fed_by].item() if fed_by else None,
                "first_loss": row.first_loss,
                "second_loss": row.second_loss,
            }
            for row in readings
        ],
        "read": numbers_of(read, (layer, head)),
        "without": numbers_of(muted, (layer, head)),
        "weights": [triangle(muted.weights[each]) for each in ((layer, head), fed_by) if each],
        "feeding": [
            {"head": (earlier, each), "composition": feeding[earlier, each].item(), "without": score.item(),
             "previous_token": read.previous_token[earlier, each].item()}
            for earlier, row in enumerate(
                without if shown is last else scores_without(shown.gpt, phrase, layer, head)
            )
            for each, score in enumerate(row)
        ],
        "chance": scores.chance,
        "error": difference_from_model(shown, muted, phrase, request.muted),
    }  # fmt: skip


def choose_model(snapshots: Snapshots, name: str | None) -> tuple[str, str]:
    """The model asked for if steps of its training were kept, else one with an induction head; and a note on that."""
    asked = snapshots.served.find(name).name
    if snapshots.steps(asked):
        return asked, ""
    models = snapshots.served.models
    formed = next((each for each in models if snapshots.formed_head(each)), None)
    if formed is None:
        return asked, ""
    theirs, ours = (models[name].config.vocab_size for name in (asked, formed))
    smaller = f", with a smaller vocabulary: {ours:,} tokens" if ours < theirs else ""
    return formed, f"No steps of {asked}’s training were kept, so this is {formed}{smaller}."


def tokenize_phrase(served: ServedModels, request: InductionRequest, name: str) -> TokenizedSentence:
    """The first tokens of the sentence, as they are in the middle of a text. Raises ``InputError`` if too few."""
    sentence = request.sentence.strip()
    if sentence and served.models[name].tokenizer.kind == "bpe":
        sentence = f" {sentence}"
    tokenized = tokenize_sentence(served, request.model_copy(update={"model": name, "sentence": sentence}))
    most = min(MAX_PHRASE, tokenized.loaded.config.context_length // 2)
    if len(tokenized.ids) < MIN_PHRASE:
        raise InputError("sentence", f"The phrase must have at least {MIN_PHRASE} tokens, found {len(tokenized.ids)}.")
    if len(tokenized.ids) <= most:
        return tokenized
    note = f"Your sentence has {len(tokenized.ids)} tokens for {name}; its first {most} are repeated."
    return TokenizedSentence(tokenized.loaded, tokenized.ids[:most], note)


def strongest(scores: torch.Tensor) -> Head:
    """The layer and head of the largest of ``scores`` ``(n_layer, n_head)``."""
    layer, head = divmod(int(scores.argmax()), scores.shape[1])
    return layer, head


def numbers_of(read: TwiceRead, scored: Head) -> dict[str, object]:
    """The losses of a reading, and the induction score of a head."""
    return {
        "induction": read.induction[scored].item(),
        "first_loss": read.first_loss,
        "second_loss": read.second_loss,
        "losses": read.losses.tolist(),
    }


def triangle(weights: torch.Tensor) -> list[float]:
    """The lower triangle of ``(T, T)`` weights, row by row."""
    rows, columns = torch.tril_indices(*weights.shape)
    return weights[rows, columns].tolist()


def difference_from_model(loaded: LoadedModel, read: TwiceRead, phrase: list[int], muted: Head | None) -> float:
    """The largest difference of the losses from those of the model's own forward pass."""
    mask = torch.ones(loaded.config.n_layer, loaded.config.n_head, device=loaded.device)
    if muted:
        mask[muted] = 0
    text = TextPass(loaded.gpt, phrase * 2, mask)
    return largest_difference(read.losses, text.losses(text.stream[-1])[0].cpu())
