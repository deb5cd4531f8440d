"""Questions about how heads work together, and how two passes differ: patching, composition, cut paths, differences."""

from typing import Any, Literal

from pydantic import BaseModel
from pydantic import Field as Described

from model import InputError
from model.lens.composition import DRAWS, SEED, WAYS, composition
from model.lens.difference import attention_difference
from model.lens.head_roles import MIN_CONTEXT_LENGTH, repeated_tokens
from model.lens.patching import check_prompts, patching
from model.lens.paths import cut_paths, role_cuts
from model.lens.progress import Progress
from model.lens.text_pass import TextPass

from ..settings import Limits
from .question import (
    HEAD,
    HEAD_MASK,
    LAYER,
    MODEL,
    PROMPT,
    Field,
    HeadsField,
    ModelAnswer,
    ModelField,
    NamedToken,
    Question,
    TextAnswer,
    TextField,
    TokenField,
)
from .service import Answer, Inquiry

PerHead = list[list[float]]  # [layer][head]
PerWay = dict[Literal["q", "k", "v"], PerHead]


# ---- Patching --------------------------------------------------------------------------------------------------------


class Patched(BaseModel):
    heads: PerHead | None = Described(description="`[layer][head]`: one head's context vectors at all positions.")
    residual: list[list[float]] | None = Described(
        description="`[n_layer + 1][position]`: the residual stream before each layer, then after the last, at one "
        "position."
    )
    joint: float | None = Described(description="All requested heads patched at once.")


class PatchAnswer(TextAnswer, Patched):
    """The effects of the patches, normalised: 0 is the corrupted prompt, 1 the clean one, in either direction."""

    corrupted_tokens: list[NamedToken]
    answer: NamedToken
    wrong: NamedToken
    direction: str
    clean: float = Described(description="The logit of the answer minus that of the wrong token, in the clean run.")
    corrupted: float = Described(description="The same in the corrupted run.")
    raw: Patched = Described(description="The logit differences before normalisation.")


def check_patch(inquiry: Inquiry, _limits: Limits) -> None:
    check_prompts(inquiry.ids, inquiry.values["corrupted"])
    if not inquiry.values["grid"] and not inquiry.values["heads"]:
        raise InputError("grid", "If grid is false, heads must name the heads to patch together.")


def answer_patch(inquiry: Inquiry, progress: Progress) -> Answer:
    corrupted, answer, wrong, direction = (
        inquiry.values[name] for name in ("corrupted", "answer", "wrong", "direction")
    )
    clean_text, corrupted_text = inquiry.text, inquiry.text_of(corrupted)
    answer = most_probable(clean_text) if answer is None else answer
    wrong = most_probable(corrupted_text, other_than=answer) if wrong is None else wrong
    found = patching(
        clean_text,
        corrupted_text,
        answer=answer,
        wrong=wrong,
        direction=direction,
        together=inquiry.values["heads"],
        grid=inquiry.values["grid"],
        progress=progress,
    )
    named = inquiry.loaded.tokens([answer, wrong, *corrupted])
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


def most_probable(text: TextPass, other_than: int | None = None) -> int:
    """The id of the most probable token after a text, other than ``other_than``."""
    first, second = text.logits(len(text.ids) - 1, len(text.ids))[0].topk(2).indices.tolist()
    return int(second if first == other_than else first)


PATCH = Question(
    "patch",
    "Which heads and positions carry the difference between two prompts: activations from one are patched into "
    "the other.",
    [
        PROMPT,
        TextField(
            "corrupted",
            "A prompt with the same number of tokens that leads to a different answer.",
            ids="corrupted_tokens",
        ),
        TokenField("answer", "The token that the clean prompt leads to; the most probable by default.", default=None),
        TokenField(
            "wrong",
            "The token that the corrupted prompt leads to; by default the most probable other than `answer`.",
            default=None,
        ),
        MODEL,
        Field(
            "direction",
            "`denoise` patches activations of the clean prompt into a run of the corrupted one, `noise` those of the "
            "corrupted prompt into a run of the clean one.",
            Literal["denoise", "noise"],
            default="denoise",
        ),
        HeadsField(
            "heads",
            "Heads to patch together, each as `[layer, head]`; their joint effect is `joint` in the answer.",
            default=None,
        ),
        Field("grid", "Patch every head and position separately; false requires `heads`.", bool, default=True),
        HEAD_MASK,
    ],
    "The logit difference after patching in, from the other prompt, each head, the residual stream at each layer and "
    "position, and all given heads at once: 0 is corrupted, 1 is clean.",
    PatchAnswer,
    answer_patch,
    check_patch,
)


# ---- Composition -----------------------------------------------------------------------------------------------------


class BaselineScores(BaseModel):
    mean: float
    spread: float = Described(description="The standard deviation of the scores.")


class CompositionBaseline(BaseModel):
    """The scores of random heads, whose weights are drawn independently from one normal distribution."""

    q: BaselineScores
    k: BaselineScores
    v: BaselineScores
    heads: int = Described(
        description="The number of random heads; half of them are earlier heads, each paired with every later one."
    )
    seed: int


class CompositionAnswer(ModelAnswer):
    """`[later layer][later head][earlier layer][earlier head]`, with the gain of the layer norms folded in."""

    q: list[list[list[list[float]]]]
    k: list[list[list[list[float]]]]
    v: list[list[list[list[float]]]]
    baseline: CompositionBaseline
    centred: bool
    distance: int


def check_composition(inquiry: Inquiry, limits: Limits) -> None:
    n_layer, n_head = inquiry.loaded.config.n_layer, inquiry.loaded.config.n_head
    n_numbers = 3 * n_head**2 * n_layer * (n_layer - 1) // 2
    if n_numbers > limits.max_json_weights:
        most = f"at most {limits.max_json_weights:,} are sent"
        raise InputError("model", f"The answer would have {n_numbers:,} scores; {most}.")


def answer_composition(inquiry: Inquiry, _progress: Progress) -> Answer:
    found = composition(inquiry.gpt, **inquiry.values)
    baseline: Answer = {way: found.baseline[way]._asdict() for way in WAYS}
    scores: Answer = {way: [layer.tolist() for layer in found.scores[way]] for way in WAYS}
    return scores | {"baseline": baseline | {"heads": 2 * DRAWS, "seed": SEED}, **inquiry.values}


COMPOSITION = Question(
    "composition",
    "How strongly each head's weights read from the output of each earlier head.",
    [
        MODEL,
        Field("centred", "Also fold the layer norm's subtraction of the mean into the weights.", bool, default=False),
        Field(
            "distance",
            "How many positions the query is after the key; it matters where positions are rotary.",
            int,
            default=0,
            below="context_length",
        ),
    ],
    "Q-, K- and V-composition scores by later layer and head, then earlier layer and head, and the scores of random "
    "heads of this shape.",
    CompositionAnswer,
    answer_composition,
    check_composition,
)


# ---- Cut paths -------------------------------------------------------------------------------------------------------


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

ROLE_TEXTS, ROLE_LENGTH, ROLE_SEED = 8, 64, 0  # random tokens, repeated once, on which roles are scored


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
    length = min(ROLE_LENGTH, loaded.config.context_length // 2)
    texts = [TextPass(inquiry.gpt, ids) for ids in repeated_tokens(loaded, ROLE_TEXTS, length, ROLE_SEED).tolist()]
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


# ---- Differences -----------------------------------------------------------------------------------------------------


class DifferenceAnswer(TextAnswer):
    other_model: str
    other_tokens: list[NamedToken]
    pairs: list[tuple[int, int]] = Described(
        description="The positions that are compared, in the text and in the other text."
    )
    heads: PerHead = Described(
        description="The mean total variation distance of the rows of attention weights, 0 to 1."
    )
    most: list[list[int]] = Described(
        description="`[layer][head]`: the index in `pairs` of the query that differs most."
    )
    largest: list[tuple[int, int]] = Described(description="All heads as `[layer, head]`, the most different first.")


def answer_difference(inquiry: Inquiry, progress: Progress) -> Answer:
    other_model = inquiry.models.get("other_model", inquiry.loaded)
    given = inquiry.values["other"]
    ids = inquiry.ids if given is None else tuple(given)
    other_model.read_prompt(ids)  # raises if its vocabulary or context is too small
    found = attention_difference(inquiry.text, inquiry.text_of(ids, other_model), progress=progress)
    tokens: list[dict[str, Any]] = [token._asdict() for token in other_model.tokens(ids)]
    return {
        "other_model": other_model.name,
        "other_tokens": tokens,
        "pairs": found.pairs,
        "heads": found.heads.numpy(),
        "most": found.most.numpy(),
        "largest": found.largest(),
    }


DIFFERENCE = Question(
    "difference",
    "How differently each head attends in two texts, two models or two training steps.",
    [
        PROMPT,
        TextField("other", "Another text; the same one by default.", default=None, ids="other_tokens"),
        MODEL,
        ModelField(
            "other_model",
            "Another model with as many layers and heads, or a training step (NAME@STEP); the same one by default.",
        ),
        HEAD_MASK,
    ],
    "The mean total variation distance of each head's attention weights, and all heads, the most different first.",
    DifferenceAnswer,
    answer_difference,
)
