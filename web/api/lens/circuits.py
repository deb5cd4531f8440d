"""Answers to the questions about how heads work together: patching, composition, paths, differences."""

from collections.abc import Sequence
from typing import Any

from model import InputError, LoadedModel
from model.config import check_int
from model.lens.head_roles import MIN_CONTEXT_LENGTH, repeated_tokens
from model.lens.questions.difference import attention_difference
from model.lens.questions.patching import Direction, check_prompts, patching
from model.lens.questions.paths.composition import DRAWS, SEED, WAYS, composition
from model.lens.questions.paths.cuts import cut_paths, role_cuts
from model.lens.questions.progress import Progress
from model.lens.questions.text_pass import TextPass, heads_by_layer

from ...questions.service import Answer, Asked
from ...settings import Limits
from ..guards import read_text
from .circuits_schema import CompositionBody, DifferenceBody, PatchBody, PathsBody, RolePathsBody
from .schema import pairs

Parameters = dict[str, Any]
ROLE_TEXTS, ROLE_LENGTH, ROLE_SEED = 8, 64, 0  # random tokens, repeated once, on which roles are scored


def read_patch(limits: Limits, loaded: LoadedModel, ids: list[int], body: PatchBody) -> Parameters:
    corrupted = read_other_text(limits, loaded, "corrupted", body.corrupted, body.corrupted_tokens)
    if corrupted is None:
        raise InputError("corrupted", "Either corrupted or corrupted_tokens is needed.")
    check_prompts(ids, corrupted)
    tokens = {
        name: None if value is None else read_token(loaded, name, value)
        for name, value in (("answer", body.answer), ("wrong", body.wrong))
    }
    if body.heads:
        heads_by_layer(loaded.config, pairs(body.heads))
    grid = body.grid is not False
    if not grid and not body.heads:
        raise InputError("grid", "Without the grid there must be heads to patch together.")
    direction: Direction = body.direction or "denoise"
    return {"corrupted": corrupted, "direction": direction, "heads": body.heads or [], "grid": grid} | tokens


def read_other_text(
    limits: Limits, loaded: LoadedModel, name: str, text: str | None, tokens: Sequence[int] | None
) -> list[int] | None:
    """The ids of a second text, None where there is none. Raises ``InputError`` for this field."""
    if text is None and tokens is None:
        return None
    try:
        return read_text(limits, loaded, text, tokens)
    except InputError as error:
        raise InputError(name, str(error), error.code) from None


def read_token(loaded: LoadedModel, name: str, value: str | int) -> int:
    """The id of a token that is given as text or as an id."""
    if isinstance(value, int):
        check_int(name, value, loaded.config.vocab_size - 1, least=0)
        return value
    try:
        ids = loaded.read_prompt(value)
    except InputError as error:
        raise InputError(name, f"{name}: {error}", error.code) from None
    if len(ids) != 1:
        pieces = ", ".join(repr(token.text) for token in loaded.tokens(ids[:8]))
        raise InputError(
            name,
            f"{name} must be a single token, found {len(ids)}: {pieces}. Mind the space that a word begins with.",
        )
    return ids[0]


def answer_patch(asked: Asked, progress: Progress) -> Answer:
    corrupted, answer, wrong = (asked.parameters[name] for name in ("corrupted", "answer", "wrong"))
    clean_text, corrupted_text = asked.text, asked.text_of(tuple(corrupted))
    answer = most_probable(clean_text) if answer is None else answer
    wrong = most_probable(corrupted_text, besides=answer) if wrong is None else wrong
    direction, together = asked.parameters["direction"], pairs(asked.parameters["heads"])
    found = patching(
        clean_text,
        corrupted_text,
        answer=answer,
        wrong=wrong,
        direction=direction,
        together=together,
        grid=asked.parameters["grid"],
        progress=progress,
    )
    named = asked.loaded.tokens([answer, wrong, *corrupted])
    raw = {"heads": found.heads, "residual": found.residual}
    return {
        "corrupted_tokens": [token._asdict() for token in named[2:]],
        "answer": named[0]._asdict(),
        "wrong": named[1]._asdict(),
        "direction": direction,
        "clean": found.clean,
        "corrupted": found.corrupted,
        **{name: None if grid is None else found.restored(grid).numpy() for name, grid in raw.items()},
        "joint": None if found.joint is None else found.restored(found.joint),
        "raw": {name: None if grid is None else grid.numpy() for name, grid in raw.items()} | {"joint": found.joint},
    }


def most_probable(text: TextPass, besides: int | None = None) -> int:
    """The most probable token after a text, another one than ``besides``."""
    first, second = text.logits(text.stream[-1][0, -1]).topk(2).indices.tolist()
    return int(second if first == besides else first)


def read_composition(limits: Limits, loaded: LoadedModel, _ids: list[int], body: CompositionBody) -> Parameters:
    n_layer, n_head = loaded.config.n_layer, loaded.config.n_head
    n_numbers = 3 * n_head**2 * n_layer * (n_layer - 1) // 2
    if n_numbers > limits.max_json_weights:
        raise InputError(
            "model", f"These are {n_numbers:,} scores, and at most {limits.max_json_weights:,} numbers are sent."
        )
    return {"centred": bool(body.centred)}


def answer_composition(asked: Asked, _progress: Progress) -> Answer:
    found = composition(asked.gpt, asked.parameters["centred"])
    baseline: Answer = {way: found.baseline[way]._asdict() for way in WAYS}
    scores: Answer = {way: [layer.tolist() for layer in found.scores[way]] for way in WAYS}
    return scores | {"baseline": baseline | {"heads": 2 * DRAWS, "seed": SEED}, **asked.parameters}


def read_paths(_limits: Limits, loaded: LoadedModel, _ids: list[int], body: PathsBody | RolePathsBody) -> Parameters:
    check_int("layer", body.layer, loaded.config.n_layer - 1, least=0)
    check_int("head", body.head, loaded.config.n_head - 1, least=0)
    return {"layer": body.layer, "head": body.head}


def answer_paths(asked: Asked, progress: Progress) -> Answer:
    found = cut_paths(asked.text, **asked.parameters, progress=progress)
    moved: Answer = {
        route: {way: effect.tolist() for way, effect in ways.items()} for route, ways in found.moved.items()
    }
    return asked.parameters | moved


def read_role_paths(limits: Limits, loaded: LoadedModel, ids: list[int], body: RolePathsBody) -> Parameters:
    if loaded.config.context_length < MIN_CONTEXT_LENGTH:
        found = f"The context_length must be at least {MIN_CONTEXT_LENGTH}, found {loaded.config.context_length}."
        raise InputError("model", found)
    return read_paths(limits, loaded, ids, body) | {"way": body.way or "k"}


def answer_role_paths(asked: Asked, progress: Progress) -> Answer:
    length = min(ROLE_LENGTH, asked.loaded.config.context_length // 2)
    texts = [TextPass(asked.gpt, ids) for ids in repeated_tokens(asked.loaded, ROLE_TEXTS, length, ROLE_SEED).tolist()]
    found = role_cuts(texts, **asked.parameters, progress=progress)
    cut: Answer = {
        route: {role: scores.tolist() for role, scores in roles.items()} for route, roles in found.cut.items()
    }
    return asked.parameters | {"plain": found.plain, "uniform": found.uniform} | cut


def read_difference(limits: Limits, loaded: LoadedModel, ids: list[int], body: DifferenceBody) -> Parameters:
    other = read_other_text(limits, loaded, "other", body.other, body.other_tokens)
    return {"other": ids if other is None else other}


def answer_difference(asked: Asked, progress: Progress) -> Answer:
    other_model, ids = asked.other or asked.loaded, tuple(asked.parameters["other"])
    other_model.read_prompt(ids)  # its vocabulary and context may be smaller
    other = asked.questions.text(other_model, ids, asked.head_mask)
    found = attention_difference(asked.text, other, progress=progress)
    return {
        "other_model": other_model.name,
        "other_tokens": [token._asdict() for token in other_model.tokens(ids)],
        "pairs": found.pairs,
        "heads": found.heads.numpy(),
        "most": found.most.numpy(),
        "largest": found.largest(),
    }
