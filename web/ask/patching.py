"""The question of which heads and positions carry the difference between two prompts."""

from typing import Literal

from pydantic import BaseModel
from pydantic import Field as Described

from model import InputError
from model.lens.patching import check_prompts, patching
from model.lens.progress import Progress
from model.lens.text_pass import TextPass

from ..settings import Limits
from .inquiry import Answer, Inquiry
from .question import (
    HEAD_MASK,
    MODEL,
    PROMPT,
    Field,
    HeadsField,
    NamedToken,
    PerHead,
    Question,
    TextAnswer,
    TextField,
    TokenField,
)


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
