"""The questions of how a head changes if it does not see the output of one earlier head."""

from typing import Literal

from pydantic import BaseModel
from pydantic import Field as Described

from model import InputError
from model.lens.head_roles import LENGTH, MIN_CONTEXT_LENGTH, N_TEXTS, SEED, repeated_tokens
from model.lens.paths import cut_paths, role_cuts
from model.lens.progress import Progress
from model.lens.text_pass import TextPass

from ..settings import Limits
from .inquiry import Answer, Inquiry
from .question import HEAD, HEAD_MASK, LAYER, MODEL, PROMPT, Field, ModelAnswer, PerHead, Question, TextAnswer

PerWay = dict[Literal["q", "k", "v"], PerHead]


class PathsAnswer(TextAnswer):
    """For q, k and v, `[earlier layer][earlier head]`: how much cutting that path changes the later head."""

    layer: int
    head: int
    direct: PerWay = Described(description="Only the direct path through the residual stream is cut.")
    every: PerWay = Described(description="All paths are cut, including those through the layers between.")


def answer_paths(inquiry: Inquiry, progress: Progress) -> Answer:
    found = cut_paths(inquiry.text, **inquiry.values, progress=progress)
    moved: Answer = {
        route: {way: effect.tolist() for way, effect in ways.items()} for route, ways in found.moved.items()
    }
    return inquiry.values | moved


PATHS = Question(
    "paths",
    "How a head changes if it does not see the output of one earlier head.",
    [PROMPT, MODEL, LAYER, HEAD, HEAD_MASK],
    "For each earlier layer and head, how much of the attention moves when its path into the queries or the keys is "
    "cut, and how much of the output changes when it is cut from the values.",
    PathsAnswer,
    answer_paths,
)


class RoleScore(BaseModel):
    previous_token: float
    duplicate_token: float
    induction: float


class CutRoleScores(BaseModel):
    """For each role, `[earlier layer][earlier head]`: the later head's score with that path cut."""

    previous_token: PerHead
    duplicate_token: PerHead
    induction: PerHead


class RolePathsAnswer(ModelAnswer):
    layer: int
    head: int
    way: str
    plain: RoleScore = Described(description="The scores with no path cut.")
    direct: CutRoleScores
    every: CutRoleScores
    uniform: float = Described(description="The score of a head that attends to all tokens equally.")


def check_role_paths(inquiry: Inquiry, _limits: Limits) -> None:
    context_length = inquiry.loaded.config.context_length
    if context_length < MIN_CONTEXT_LENGTH:
        found = f"The context_length must be at least {MIN_CONTEXT_LENGTH}, found {context_length}."
        raise InputError("model", found)


def answer_role_paths(inquiry: Inquiry, progress: Progress) -> Answer:
    loaded = inquiry.loaded
    length = min(LENGTH, loaded.config.context_length // 2)
    texts = [TextPass(inquiry.gpt, ids) for ids in repeated_tokens(loaded, N_TEXTS, length, SEED).tolist()]
    found = role_cuts(texts, **inquiry.values, progress=progress)
    cut: Answer = {
        route: {role: scores.tolist() for role, scores in roles.items()} for route, roles in found.cut.items()
    }
    return inquiry.values | {"plain": found.plain, "uniform": found.uniform} | cut


ROLE_PATHS = Question(
    "role-paths",
    "How well a head keeps its role if it does not see the output of one earlier head.",
    [
        MODEL,
        LAYER,
        HEAD,
        Field(
            "way",
            "Whether to cut the paths into the head's queries (`q`) or its keys (`k`).",
            Literal["q", "k"],
            default="k",
        ),
    ],
    "The head's role scores on random tokens that are repeated once, intact and with each path cut.",
    RolePathsAnswer,
    answer_role_paths,
    check_role_paths,
)
