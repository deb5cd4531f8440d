"""Rungs as notebooks that run without Headscope: the ladder's own lines, the visitor's inputs, and the page's numbers.

A notebook has four cells: a title, the definitions, the inputs, and the body of the rung's function in
``notebook_cells.py``. The definitions are copied from the files with everything from ``model`` that they use.
Before them, a cell fetches the model, if the rung reads one of those that come with Headscope.
"""

import ast
import hashlib
import importlib
import importlib.util
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from model import InputError
from model.checkpoint.folder_format import SNAPSHOTS
from model.ladder.terms import seeded

from ..serving.snapshots import Snapshots
from ..settings import CHECKPOINTS
from . import notebook_cells
from .block import BlockRequest, loss_ladder, make_block
from .induction import InductionRequest
from .induction import induction as induction_lesson
from .lesson_request import BigramRequest, LessonRequest, StrictRequest, check_sentence, check_training_text
from .multi_head import CausalMaskingRequest, ManyHeadsRequest, changed_mask
from .self_attention import (
    AveragesRequest,
    SelfAttentionRequest,
    TrainableWeightsRequest,
    averages_of_the_past,
    make_matrices,
    scores_in_place_of_zeros,
    with_trainable_weights,
    without_weights,
)
from .sentence import parse_sentence
from .tokenized_sentence import tokenize_sentence
from .tokens_and_windows import ALPHABET, SHOWN_TOKENS, TRAINING_TEXT, TokensRequest, WindowsRequest
from .whole_model import DrawRequest
from .whole_model import whole_model as whole_model_lesson

Inputs = dict[str, object]
HERE = notebook_cells.__name__


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


class Notebook(NamedTuple):
    """The title of a rung, the fields of a request for its notebook, its inputs, and what runs with them."""

    title: str
    request: type[StrictRequest]
    inputs: Callable[[Snapshots, Any], Inputs]  # raises ``InputError``
    run: Callable[..., None]
    needs: str = ""  # packages besides torch
    prints: str = "the numbers of the page to four decimal places"


MODEL_PACKAGES = "safetensors, tokenizers"
NOTEBOOKS = {
    "tokens": Notebook("1. Text to tokens", TokensRequest, tokens, notebook_cells.tokens),
    "windows": Notebook("2. Windows and vectors", WindowsRequest, windows, notebook_cells.windows),
    "untrained-bigram": Notebook(
        "3. The bigram model",
        BigramRequest,
        bigram,
        notebook_cells.bigram,
        prints="the numbers that “Train it” gives on the page for this text and these settings",
    ),
    "averages": Notebook("4. The average of the past", AveragesRequest, averages, notebook_cells.averages),
    "self-attention": Notebook(
        "5. Self-attention without weights", SelfAttentionRequest, self_attention, notebook_cells.self_attention
    ),
    "trainable-weights": Notebook(
        "6. Trainable weights", TrainableWeightsRequest, trainable_weights, notebook_cells.trainable_weights
    ),
    "causal-masking": Notebook(
        "7. Causal masking", CausalMaskingRequest, causal_masking, notebook_cells.causal_masking
    ),
    "many-heads": Notebook("8. Many heads", ManyHeadsRequest, many_heads, notebook_cells.many_heads),
    "block": Notebook("9. The rest of a block", BlockRequest, block, notebook_cells.block),
    "whole-model": Notebook(
        "10. The whole model", DrawRequest, whole_model, notebook_cells.whole_model, MODEL_PACKAGES
    ),
    "induction": Notebook("11. Induction", InductionRequest, induction, notebook_cells.induction, MODEL_PACKAGES),
}


def make_notebook(name: str, snapshots: Snapshots, request: Any, server: str) -> dict[str, object]:
    """The notebook of a rung as JSON. It fetches what it reads from ``server``, an address. Raises ``InputError``."""
    title, _, inputs, run, needs, prints = NOTEBOOKS[name]
    if not isinstance(request, BigramRequest):
        check_sentence(request.sentence)
    given = inputs(snapshots, request)
    if sum(len(repr(value)) for value in given.values()) > 1_000_000:
        raise InputError("sentence", "These inputs are too large for a notebook.")
    told = inspect.getdoc(run) or ""
    fetched = files_to_fetch(snapshots, given) if needs else {}
    model = "the model, which its first cell fetches" if fetched else f"the model in the folder {given.get('folder')}"
    needed = f"torch, {needs} and {model}" if needs else "torch alone"
    text = f"# {title}\n\n{told} It needs {needed}, and prints {prints}."
    cells = [("markdown", text), ("code", definitions(run)), ("code", settings(given)), ("code", body_of(run))]
    if fetched:
        fetch = notebook_cells.fetch_model
        folder = str(given["folder"])
        place: Inputs = {"server": f"{server}learn/models/{Path(folder).name}", "folder": folder, "files": fetched}
        cells.insert(1, ("code", "\n\n".join([definitions(fetch), settings(place), body_of(fetch)])))
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "language_info": {"name": "python"},
        },
        "cells": [
            {"cell_type": kind, "id": f"cell-{i}", "metadata": {}, "source": source}
            | ({"execution_count": None, "outputs": []} if kind == "code" else {})
            for i, (kind, source) in enumerate(cells)
        ],
    }


def settings(given: Inputs) -> str:
    return "\n".join(f"{key} = {literal(value)}" for key, value in given.items())


def literal(value: object) -> str:
    """``value`` as Python source."""
    if isinstance(value, Tensor):
        return f"torch.tensor({value.tolist()})"
    if isinstance(value, dict):
        return "{\n" + "".join(f"    {key!r}: {literal(each)},\n" for key, each in value.items()) + "}"
    return repr(value)


# ---- Source code with everything that it uses ------------------------------------------------------------------------


class Source(NamedTuple):
    """A module's text by line, and its top-level statements by the names that they bind."""

    lines: list[str]
    statements: dict[str, ast.stmt]


@cache
def source_of(module: str) -> Source:
    text = inspect.getsource(importlib.import_module(module))
    statements: dict[str, ast.stmt] = {}
    for node in ast.parse(text).body:
        for name in bound_by(node):
            statements[name] = node
    return Source(text.splitlines(), statements)


def bound_by(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in names)
        case ast.Assign(targets=targets):
            yield from (each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name


def used_by(node: ast.AST) -> Iterator[str]:
    """The names that ``node`` reads, except in annotations, which a notebook does not evaluate.

    What annotations name of other packages is imported all the same; see ``annotated_in``.
    """
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.Name):
                yield child.id
            if isinstance(child, ast.AST):
                yield from used_by(child)


def annotated_in(node: ast.AST) -> Iterator[str]:
    """The names in the annotations of ``node``."""
    for each in ast.walk(node):
        for annotation in (getattr(each, "annotation", None), getattr(each, "returns", None)):
            if annotation is not None:
                yield from (part.id for part in ast.walk(annotation) if isinstance(part, ast.Name))


class Collector:
    """Copies definitions in an order in which they run.

    What ``notebook_cells.py`` defines replaces others of that name.
    """

    def __init__(self) -> None:
        self.imports: set[str] = set()
        self.copied: list[str] = []
        self.found: dict[str, str] = {}  # the module of each name

    def use(self, node: ast.AST, module: str) -> None:
        """Copy what ``node`` in ``module`` uses."""
        for name in used_by(node):
            self.copy(name, module)

    def copy(self, name: str, module: str) -> None:
        lines, statements = source_of(module)
        node = statements.get(name)
        if node is None:
            return  # a built-in or local name
        if isinstance(node, ast.Import | ast.ImportFrom):
            self.follow(name, node, module)
            return
        replaced = source_of(HERE).statements.get(name)
        if module != HERE and replaced is not None and not isinstance(replaced, ast.Import | ast.ImportFrom):
            self.copy(name, HERE)
            return
        if name in self.found:
            assert self.found[name] == module, f"{name} is defined in {self.found[name]} and {module}"
            return
        for each in bound_by(node):
            self.found[each] = module
        self.use(node, module)
        for each in annotated_in(node):
            imported = statements.get(each)
            if isinstance(imported, ast.ImportFrom) and not is_of_model(imported, module):
                self.follow(each, imported, module)
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
        self.copied.append("\n".join(lines[first - 1 : node.end_lineno]))

    def follow(self, name: str, node: ast.Import | ast.ImportFrom, module: str) -> None:
        """Copy what an import of ``model`` brings; keep any other import."""
        alias = next(each for each in node.names if (each.asname or each.name.partition(".")[0]) == name)
        if isinstance(node, ast.Import):
            self.imports.add(f"import {alias.name}" + (f" as {alias.asname}" if alias.asname else ""))
            return
        target = imported_module(node, module)
        if is_of_model(node, module):
            self.copy(alias.name, target)
        else:
            self.imports.add(f"from {target} import {alias.name}" + (f" as {alias.asname}" if alias.asname else ""))


def imported_module(node: ast.ImportFrom, module: str) -> str:
    """The absolute name of what ``node`` in ``module`` imports from."""
    package = sys.modules[module].__package__ or ""
    return importlib.util.resolve_name("." * node.level + (node.module or ""), package)


def is_of_model(node: ast.ImportFrom, module: str) -> bool:
    return imported_module(node, module).split(".")[0] == "model"


@cache
def definitions(run: Callable[..., None]) -> str:
    """The first code cell: imports, and all definitions that ``run`` uses."""
    collector = Collector()
    collector.use(source_of(HERE).statements[run.__name__], HERE)
    collector.imports.add("import torch")  # for the inputs
    first = ["from __future__ import annotations", "", *sorted(collector.imports)]
    return "\n\n\n".join(["\n".join(first), *collector.copied])


@cache
def body_of(run: Callable[..., None]) -> str:
    """The lines of ``run`` below its docstring."""
    lines, statements = source_of(HERE)
    node = statements[run.__name__]
    assert isinstance(node, ast.FunctionDef)
    return textwrap.dedent("\n".join(lines[node.body[1].lineno - 1 : node.end_lineno]))
