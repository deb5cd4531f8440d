"""The questions of how a head changes if it does not see the output of one earlier head."""

from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel
from pydantic import Field as Described

from model import InputError
from model.lens.head_roles import check_repeats, random_texts
from model.lens.interventions.patching import check_prompts
from model.lens.interventions.paths import cut_paths, patch_paths, role_cuts
from model.lens.interventions.reference import contexts_of
from model.lens.progress import Progress, part
from model.lens.text_pass import TextPass

from ...settings import Limits
from ..inquiry import Answer, Inquiry
from ..patching import ANSWER, DIRECTION, WRONG, prompts_of
from ..prompts import of_many
from ..question import (
    HEAD,
    HEAD_MASK,
    LAYER,
    MODEL,
    PROMPT,
    Field,
    ModelAnswer,
    NamedToken,
    PerHead,
    Question,
    TextAnswer,
    TextField,
)
from ..reference import METHOD, REFERENCE, ReferenceSet, check_reference, reference_of

PerWay = dict[Literal["q", "k", "v"], PerHead]


class PatchedPaths(BaseModel):
    """The logit differences with a path patched, normalised: 0 is the corrupted prompt, 1 the clean one."""

    corrupted_tokens: list[NamedToken]
    answer: NamedToken
    wrong: NamedToken
    direction: str
    clean: float = Described(description="The logit of the answer minus that of the wrong token, in the clean run.")
    corrupted: float = Described(description="The same in the corrupted run.")
    direct: PerWay
    every: PerWay


class PathsAnswer(TextAnswer):
    """For q, k and v, `[earlier layer][earlier head]`: how much cutting that path changes the later head."""

    layer: int
    head: int
    method: str
    reference: ReferenceSet | None
    direct: PerWay = Described(description="Only the direct path through the residual stream is cut.")
    every: PerWay = Described(description="All paths are cut, including those through the layers between.")
    patched: PatchedPaths | None = Described(
        description="If `corrupted` is given: the effect of each path on the answer, with the earlier head's output "
        "taken from the other prompt."
    )


def check_paths(inquiry: Inquiry, _limits: Limits) -> None:
    values = inquiry.values
    if values["corrupted"] is None:
        for name in ("answer", "wrong"):
            if values[name] is not None:
                raise InputError(name, f"{name} needs corrupted, the other prompt of path patching.")
        check_reference(inquiry)
        return
    check_prompts(inquiry.ids, values["corrupted"])
    if values["method"] != PATHS_METHOD.default or values["reference"] is not None:
        raise InputError("method", "With corrupted, the earlier head's output is that of the corrupted prompt.")


def answer_paths(inquiry: Inquiry, progress: Progress) -> Answer:
    place: dict[str, Any] = {name: inquiry.values[name] for name in ("layer", "head")}
    method, corrupted, patched = inquiry.values["method"], inquiry.values["corrupted"], None
    if corrupted is None:
        reference, said = reference_of(inquiry)
    else:
        method, reference = "resample", contexts_of(inquiry.text_of(corrupted))
        said = {"name": "the corrupted prompt", "texts": 1, "tokens": len(corrupted)}
        patched = answer_patched(inquiry, place, part(progress, 0, 0.5))
        progress = part(progress, 0.5, 1)
    answer = cut_paths(inquiry.text, **place, method=method, reference=reference, progress=progress)
    return place | {"method": method, "reference": said, "patched": patched} | answer.to_dict()


def answer_patched(inquiry: Inquiry, place: dict[str, Any], progress: Progress) -> Answer:
    prompts, given, said = prompts_of(inquiry)
    answer = patch_paths(prompts[0], prompts[1], **place, **given, progress=progress)
    return answer.to_dict() | said


PATHS_METHOD = replace(METHOD, default="mean")
CORRUPTED = TextField(
    "corrupted",
    "Another prompt with as many tokens, which leads to a different answer. The earlier head's output is then taken "
    "from it, and the effect on the answer is measured.",
    default=None,
    ids="corrupted_tokens",
)


PATHS = Question(
    "paths",
    "How a head changes if it does not see the output of one earlier head.",
    [PROMPT, MODEL, LAYER, HEAD, HEAD_MASK, PATHS_METHOD, REFERENCE, CORRUPTED, ANSWER, WRONG, DIRECTION],
    "For each earlier layer and head, how much of the attention moves when its path into the queries or the keys is "
    "cut, and how much of the output changes when it is cut from the values. With `corrupted`, also the effect of each "
    "path on the answer (path patching).",
    PathsAnswer,
    answer_paths,
    check_paths,
    less="a shorter text or an earlier layer",
)


def answer_patched_paths(inquiry: Inquiry, progress: Progress) -> Answer:
    return answer_patched(inquiry, {name: inquiry.values[name] for name in ("layer", "head")}, progress)


PATHS_PROMPTS = of_many(
    replace(
        PATHS,
        summary="How much each path from an earlier head into a head carries the difference between two prompts.",
        compute=answer_patched_paths,
    ),
    "patch_paths",
    fixed={"method": PATHS_METHOD.default, "reference": None},
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
    check_repeats(inquiry.loaded.config)


def answer_role_paths(inquiry: Inquiry, progress: Progress) -> Answer:
    texts = [TextPass(inquiry.gpt, ids) for ids in random_texts(inquiry.loaded)]
    return inquiry.values | role_cuts(texts, **inquiry.values, progress=progress).to_dict()


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
    less="an earlier layer or a smaller model",
)
