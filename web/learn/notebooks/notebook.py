"""Rungs as notebooks that run without Headscope: the page's words, the ladder's own lines, the visitor's inputs, the
page's numbers, and three tasks with their solutions.

The definitions are copied from the files with everything from ``model`` that they use. Before them, a cell fetches the
model, if the rung reads one of those that come with Headscope. Then follow the inputs and the body of the rung's
function in ``cells.py``. The tasks are functions in ``tasks_of_*.py``: a notebook has their first lines and their
checks, and at its end the whole functions.
"""

import hashlib
import inspect
import textwrap
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from model import InputError
from model.checkpoint.folder_format import SNAPSHOTS
from model.ladder.terms import seeded

from ...serving.snapshots import Snapshots
from ...settings import CHECKPOINTS
from .. import bigram as bigram_lesson
from ..block import BlockRequest, loss_ladder, make_block
from ..induction import InductionRequest
from ..induction import induction as induction_lesson
from ..lesson_request import BigramRequest, LessonRequest, StrictRequest, check_sentence, check_training_text
from ..multi_head import CausalMaskingRequest, ManyHeadsRequest, changed_mask
from ..self_attention import (
    AveragesRequest,
    SelfAttentionRequest,
    TrainableWeightsRequest,
    averages_of_the_past,
    make_matrices,
    scores_in_place_of_zeros,
    with_trainable_weights,
    without_weights,
)
from ..sentence import parse_sentence
from ..tokenized_sentence import tokenize_sentence
from ..tokens_and_windows import ALPHABET, SHOWN_TOKENS, TRAINING_TEXT, TokensRequest, WindowsRequest
from ..whole_model import DrawRequest
from ..whole_model import whole_model as whole_model_lesson
from . import cells, tasks_of_attention, tasks_of_models, tasks_of_text
from .copied_source import Task, body_of, definitions, signature_of
from .prose import as_markdown, content_of, main_path

Inputs = dict[str, object]


# ---- The inputs of each rung -----------------------------------------------------------------------------------------


def tokens(_: Snapshots, request: TokensRequest) -> Inputs:
    check_training_text(request.training_text)
    training_text = request.training_text if request.training_text.strip() else TRAINING_TEXT
    settings = {"merges": request.merges, "allow_end_of_text": request.allow_end_of_text}
    return {"sentence": request.sentence, "training_text": training_text, "alphabet": ALPHABET, **settings}


def windows(_: Snapshots, request: WindowsRequest) -> Inputs:
    return {name: getattr(request, name) for name in ("sentence", "context_length", "stride")}


def bigram(_: Snapshots, request: BigramRequest) -> Inputs:
    settings = {name: getattr(request, name) for name in ("training_text", "steps", "learning_rate", "seed")}
    return {"sentence": request.sentence[:SHOWN_TOKENS]} | settings


def recorded_bigram(_: Snapshots, request: BigramRequest) -> Inputs:
    recording = bigram_lesson.recorded()
    before, after = recording["before"], recording["after"]
    losses = {
        "all characters equally likely": before["uniform"],
        "the floor: counted pairs": before["floor"],
        "untrained, on the training part": before["loss"],
        "trained, on the training part": after["loss"],
        "trained, on the held-out tenth": after["held_out"],
    }
    alphabet = {name: before[name] for name in ("characters", "frequent")}
    return {"sentence": request.sentence[:SHOWN_TOKENS]} | alphabet | {"losses": losses, "table": recording["table"]}


def averages(snapshots: Snapshots, request: AveragesRequest) -> Inputs:
    lesson: Any = averages_of_the_past(snapshots.served, request)
    scores = scores_in_place_of_zeros(len(lesson["x"]), request.scores)
    sentence = "8 random tokens" if request.lecture else request.sentence
    return words(lesson, request) | {"sentence": sentence, "scores": scores}


def self_attention(snapshots: Snapshots, request: SelfAttentionRequest) -> Inputs:
    lesson: Any = without_weights(snapshots.served, request)
    return words(lesson, request) | {"factor": request.factor}


def trainable_weights(snapshots: Snapshots, request: TrainableWeightsRequest) -> Inputs:
    lesson: Any = with_trainable_weights(snapshots.served, request)
    matrices = {f"W_{name}": torch.tensor(matrix) for name, matrix in lesson["matrices"].items()}
    is_swapped = request.kind.startswith("reader")
    return words(lesson, request) | matrices | {"scale": lesson["scale"], "is_swapped": is_swapped}


def causal_masking(snapshots: Snapshots, request: CausalMaskingRequest) -> Inputs:
    given = parse_sentence(snapshots.served, request)
    matrices = make_matrices(request.kind)
    used = {f"W_{name}": matrices[name] for name in ("query", "key")} | {"mask": changed_mask(request, len(given.x))}
    return words(given.data, request) | used | {name: getattr(request, name) for name in ("factor", "dropout", "seed")}


def many_heads(snapshots: Snapshots, request: ManyHeadsRequest) -> Inputs:
    return words(parse_sentence(snapshots.served, request).data, request) | {"d_out": request.d_out}


def block(snapshots: Snapshots, request: BlockRequest) -> Inputs:
    made = seeded(123, make_block)
    # GPT-2 stores its matrices transposed.
    tensors = {name: t.T if t.ndim == 2 else t for name, t in made.state_dict().items()}
    given = parse_sentence(snapshots.served, request)
    config = {"n_head": made.attn.n_head, "eps": 1e-5, "activation": made.mlp.activation}
    recorded: Any = loss_ladder()["models"]
    losses = {each["name"]: each["held_out_loss"] for each in recorded}
    inputs = {"x": given.x * request.scale, "tensors": tensors, "config": config, "recorded_losses": losses}
    return words(given.data, request) | inputs


def whole_model(snapshots: Snapshots, request: DrawRequest) -> Inputs:
    shown: Any = whole_model_lesson(snapshots.served, request)
    tokenized = tokenize_sentence(snapshots.served, request)
    text, tokenizer = request.sentence, tokenized.loaded.tokenizer
    if tokenized.note:  # the model cannot read all of it
        text = tokenizer.decode(tokenized.ids)
    place = {name: shown[name] for name in ("layer", "head", "query")}
    place |= {name: getattr(request, name) for name in ("temperature", "top_k", "top_p", "seed", "draws")}
    return folder_of(snapshots, shown["model"]) | {"sentence": text, "n_tokens": len(tokenized.ids), **place}


def induction(snapshots: Snapshots, request: InductionRequest) -> Inputs:
    shown: Any = induction_lesson(snapshots, request)
    phrase = {
        "sentence": request.sentence,
        "words": shown["tokens"][: shown["n"]],
        "phrase": shown["ids"][: shown["n"]],
    }
    steps = {step: folder_of(snapshots, shown["model"], step)["file"] for step in shown["steps"]}
    layer, head = shown["head"]
    heads = {"layer": layer, "head": head, "fed_by": shown["fed_by"], "muted": shown["muted"]}
    return phrase | folder_of(snapshots, shown["model"], shown["step"]) | {"steps": steps} | heads


def words(lesson: dict[str, Any], request: LessonRequest) -> Inputs:
    """The sentence, its words as the rung shows them, and their numbers."""
    return {"sentence": request.sentence, "words": lesson["words"], "x": torch.tensor(lesson["x"])}


def folder_of(snapshots: Snapshots, name: str, step: int | None = None) -> Inputs:
    """Where the weights are. The path on this machine stays private: only the folder's name is given."""
    file = "model.safetensors" if step is None else f"{SNAPSHOTS}/{step:06d}.safetensors"
    return {"folder": f"checkpoints/{Path(snapshots.served.sources.get(name, name)).name}", "file": file}


# ---- The models that come with Headscope -----------------------------------------------------------------------------


@cache
def published_hashes() -> dict[str, str]:
    """The SHA-256 of each file of the repository's models, by its path in ``checkpoints/``."""
    sums = CHECKPOINTS / "SHA256SUMS"  # which the wheel, as the models themselves, is without
    lines = sums.read_text(encoding="utf-8").splitlines() if sums.is_file() else []
    return {path: sha256 for sha256, path in map(str.split, lines)}


def published_file(path: str) -> Path | None:
    """A file of the repository's models; None for any other, and for one that an operator has replaced."""
    sha256, file = published_hashes().get(path), CHECKPOINTS / path
    if sha256 is None or not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != sha256:
        return None
    return file


def files_to_fetch(snapshots: Snapshots, given: Inputs) -> dict[str, str]:
    """The hashes of the files that a notebook with these inputs reads, by their paths in its folder.

    Empty unless these files come with the repository.
    """
    steps: Any = given.get("steps", {})
    name = Path(str(given["folder"])).name
    used = dict.fromkeys(["config.json", "tokenizer.json", str(given["file"]), *steps.values()])
    folders = [Path(source).resolve() for source in snapshots.served.sources.values()]
    is_own = any(folder.name == name and folder != CHECKPOINTS / name for folder in folders)
    if is_own or any(published_file(f"{name}/{file}") is None for file in used):
        return {}
    return {file: published_hashes()[f"{name}/{file}"] for file in used}


# ---- The notebooks ---------------------------------------------------------------------------------------------------


class Notebook(NamedTuple):
    """A rung, the fields of a request for its notebook, its inputs, what runs with them, and its tasks."""

    rung: int
    request: type[StrictRequest]
    inputs: Callable[[Snapshots, Any], Inputs]  # raises ``InputError``
    run: Callable[..., None]
    tasks: list[Task]
    needs: str = ""  # packages besides torch
    prints: str = "the numbers of the page to four decimal places"


MODEL_PACKAGES = "safetensors, tokenizers"
TEXT, ATTENTION, MODELS = tasks_of_text, tasks_of_attention, tasks_of_models
TRAINED_BIGRAM = "the numbers that “Train it” gives on the page for this text and these settings"


def tasks_in(module: ModuleType, *names: str) -> list[Task]:
    return [(getattr(module, name), getattr(module, f"check_{name}")) for name in names]


OF_BIGRAMS = tasks_in(TEXT, "surprise", "counted_probabilities", "mean_surprise")
RECORDED_BIGRAM = Notebook(3, BigramRequest, recorded_bigram, cells.recorded_bigram, OF_BIGRAMS)  # without a text
NOTEBOOKS = {
    "tokens": Notebook(
        1,
        TokensRequest,
        tokens,
        cells.tokens,
        tasks_in(TEXT, "character_ids", "most_frequent_pair", "merge_in_list"),
    ),
    "windows": Notebook(
        2,
        WindowsRequest,
        windows,
        cells.windows,
        tasks_in(TEXT, "inputs_and_targets", "n_windows", "embed_by_product"),
    ),
    "untrained-bigram": Notebook(3, BigramRequest, bigram, cells.bigram, OF_BIGRAMS, prints=TRAINED_BIGRAM),
    "averages": Notebook(
        4,
        AveragesRequest,
        averages,
        cells.averages,
        tasks_in(ATTENTION, "running_mean", "averaging_matrix", "weights_from_scores"),
    ),
    "self-attention": Notebook(
        5,
        SelfAttentionRequest,
        self_attention,
        cells.self_attention,
        tasks_in(ATTENTION, "dot_products", "my_softmax", "context_of_last"),
    ),
    "trainable-weights": Notebook(
        6,
        TrainableWeightsRequest,
        trainable_weights,
        cells.trainable_weights,
        tasks_in(ATTENTION, "score_of", "factor_for", "one_head"),
    ),
    "causal-masking": Notebook(
        7,
        CausalMaskingRequest,
        causal_masking,
        cells.causal_masking,
        tasks_in(ATTENTION, "may_look", "cut_and_renormalise", "dropped"),
    ),
    "many-heads": Notebook(
        8,
        ManyHeadsRequest,
        many_heads,
        cells.many_heads,
        tasks_in(ATTENTION, "into_heads", "side_by_side", "n_attention_weights"),
    ),
    "block": Notebook(
        9,
        BlockRequest,
        block,
        cells.block,
        tasks_in(MODELS, "standardised", "my_gelu", "n_block_weights"),
    ),
    "whole-model": Notebook(
        10,
        DrawRequest,
        whole_model,
        cells.whole_model,
        tasks_in(MODELS, "with_temperature", "among_the_best", "continued"),
        MODEL_PACKAGES,
    ),
    "induction": Notebook(
        11,
        InductionRequest,
        induction,
        cells.induction,
        tasks_in(MODELS, "what_followed", "previous_token_score", "saved_by_repetition"),
        MODEL_PACKAGES,
    ),
}


def make_notebook(name: str, snapshots: Snapshots, request: Any, server: str) -> dict[str, object]:
    """The notebook of a rung as JSON. It fetches what it reads from ``server``, an address. Raises ``InputError``."""
    notebook = NOTEBOOKS[name]
    check_sentence(request.sentence)
    if isinstance(request, BigramRequest):
        if request.training_text:
            bigram_lesson.check_bigram(snapshots.served, request)
        else:
            notebook = RECORDED_BIGRAM
    given = notebook.inputs(snapshots, request)
    if sum(len(repr(value)) for value in given.values()) > 1_000_000:
        raise InputError("sentence", "These inputs are too large for a notebook.")
    fetched = files_to_fetch(snapshots, given) if notebook.needs else {}
    made = [
        *introduction(notebook, given, is_fetched=bool(fetched)),
        *fetching(server, given, fetched),
        Cell("definitions", "code", definitions(notebook.run, notebook.tasks)),
        Cell("inputs", "code", settings(given)),
        Cell("numbers", "code", body_of(notebook.run)),
        *exercises(notebook),
    ]
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "language_info": {"name": "python"},
        },
        "cells": [each.as_json() for each in made],
    }


class Cell(NamedTuple):
    id: str
    kind: Literal["markdown", "code"]
    source: str
    may_fail: bool = False  # Jupyter runs the cells below it all the same

    def as_json(self) -> dict[str, object]:
        metadata = {"tags": ["raises-exception"]} if self.may_fail else {}
        common: dict[str, object] = {"cell_type": self.kind, "id": self.id, "metadata": metadata, "source": self.source}
        return common | ({"execution_count": None, "outputs": []} if self.kind == "code" else {})


def introduction(notebook: Notebook, given: Inputs, *, is_fetched: bool) -> list[Cell]:
    """The title with what the notebook needs, and what the page says on the main path."""
    model = (
        "the model, which its first cell fetches" if is_fetched else f"the model in the folder {given.get('folder')}"
    )
    needed = f"torch, {notebook.needs} and {model}" if notebook.needs else "torch alone"
    title = f"# {notebook.rung}. {content_of(notebook.rung)['name']}"
    text = f"{inspect.getdoc(notebook.run)} It needs {needed}, and prints {notebook.prints}. Three tasks follow."
    words = f"## What the page says\n\nIts pictures and sliders are on the page.\n\n{main_path(notebook.rung)}"
    return [Cell("title", "markdown", f"{title}\n\n{text}"), Cell("words", "markdown", words)]


def fetching(server: str, given: Inputs, files: dict[str, str]) -> list[Cell]:
    """The cell that fetches ``files`` of the model, if any."""
    if not files:
        return []
    folder = str(given["folder"])
    place: Inputs = {"server": f"{server}learn/models/{Path(folder).name}", "folder": folder, "files": files}
    lines = [definitions(cells.fetch_model), settings(place), body_of(cells.fetch_model)]
    return [Cell("model", "code", "\n\n".join(lines))]


TASKS = """## Three tasks

Replace `...` with lines of your own, and run the cell. It checks them: until they are right, it ends with an error. The
solutions stand at the end."""


def exercises(notebook: Notebook) -> list[Cell]:
    """The tasks, what the rung has taught, and the solutions."""
    content = content_of(notebook.rung)
    made = [Cell("tasks", "markdown", TASKS)]
    for i, (solution, check) in enumerate(notebook.tasks, 1):
        start = f"{signature_of(solution)}\n    ...\n\n\n{body_of(check)}\nprint('Right.')"
        made.append(Cell(f"ask-{i}", "markdown", f"**Task {i}.** {inspect.getdoc(solution)}"))
        made.append(Cell(f"task-{i}", "code", start, may_fail=True))
    learned, asked = as_markdown(content["learned"]), as_markdown(content["next"])
    made.append(Cell("end", "markdown", f"## In one sentence\n\n{learned}\n\n*{asked}*\n\n## Solutions"))
    for i, (solution, _) in enumerate(notebook.tasks, 1):
        lines = f"# Task {i}\n{signature_of(solution)}\n{textwrap.indent(body_of(solution), '    ')}"
        made.append(Cell(f"solution-{i}", "code", lines))
    return made


def settings(given: Inputs) -> str:
    return "\n".join(f"{key} = {literal(value)}" for key, value in given.items())


def literal(value: object) -> str:
    """``value`` as Python source."""
    if isinstance(value, Tensor):
        return f"torch.tensor({value.tolist()})"
    if isinstance(value, list) and value and isinstance(value[0], list):
        return "[\n" + "".join(f"    {each!r},\n" for each in value) + "]"
    if isinstance(value, dict):
        return "{\n" + "".join(f"    {key!r}: {literal(each)},\n" for key, each in value.items()) + "}"
    return repr(value)
