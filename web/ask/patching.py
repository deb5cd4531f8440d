"""The question of which heads and positions carry the difference between two prompts."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import BaseModel
from pydantic import Field as Described

from model import InputError
from model.lens.interventions.patching import check_neurons, check_prompts, most_probable, patch_site, patching
from model.lens.interventions.sites import SITE_NAMES, find_site, n_components
from model.lens.progress import Progress, ignore
from model.lens.text_pass import TextPass

from ..settings import Limits
from .inquiry import Answer, Inquiry
from .prompts import of_many
from .question import (
    HEAD_MASK,
    MODEL,
    PROMPT,
    Field,
    HeadsField,
    NamedToken,
    PerHead,
    Question,
    Subject,
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


class SitePatched(BaseModel):
    """The effects of patching one activation of a site at a time, with the dimensions `axes`, normalised."""

    name: str
    hook: str = Described(description="Its name in TransformerLens.")
    axes: list[str]
    exact: list[Any] | None = Described(description="By running the model again for each activation.")
    attribution: list[Any] | None = Described(description="By attribution patching: gradient times difference.")
    correlation: float | None = Described(description="Pearson's correlation of the two, over all activations.")


class PatchAnswer(TextAnswer, Patched):
    """The effects of the patches, normalised: 0 is the corrupted prompt, 1 the clean one, in either direction."""

    corrupted_tokens: list[NamedToken]
    answer: NamedToken
    wrong: NamedToken
    direction: str
    clean: float = Described(description="The logit of the answer minus that of the wrong token, in the clean run.")
    corrupted: float = Described(description="The same in the corrupted run.")
    site: SitePatched | None
    raw: Patched = Described(description="The logit differences before normalisation.")


def check_patch(inquiry: Inquiry, limits: Limits) -> None:
    values = inquiry.values
    check_prompts(inquiry.ids, values["corrupted"])
    if values["site"] is None:
        for name, default in (("positions", "each"), ("neurons", None), ("method", "exact")):
            if values[name] != default:
                raise InputError(name, f"{name} needs a site.")
        if not values["grid"] and not values["heads"]:
            raise InputError("grid", "If grid is false, heads must name the heads to patch together.")
        return
    config, site = inquiry.loaded.config, find_site(values["site"])
    check_neurons(config, site, values["neurons"], values["method"] != "attribution")
    places = config.n_layer * n_components(site, config) if values["neurons"] is None else len(values["neurons"])
    n_numbers = 2 * places * (len(inquiry.ids) if values["positions"] == "each" else 1)
    if n_numbers > limits.max_json_weights:
        message = (
            f"The answer would have up to {n_numbers:,} numbers, and at most {limits.max_json_weights:,} are sent: "
            "patch all positions at once, or fewer neurons."
        )
        raise InputError("positions", message)


def prompts_of(inquiry: Inquiry) -> tuple[tuple[TextPass, TextPass], dict[str, Any], Answer]:
    """The two prompts, the answers and the direction as ``model.lens`` takes them, and what the answer says of them."""
    corrupted, answer, wrong, direction = (
        inquiry.values[name] for name in ("corrupted", "answer", "wrong", "direction")
    )
    clean_text, corrupted_text = inquiry.text, inquiry.text_of(corrupted)
    answer = most_probable(clean_text) if answer is None else answer
    wrong = most_probable(corrupted_text, other_than=answer) if wrong is None else wrong
    loaded = inquiry.loaded
    named = [token._asdict() for token in (*loaded.tokens([answer, wrong]), *loaded.text_tokens(corrupted))]
    said = {"corrupted_tokens": named[2:], "answer": named[0], "wrong": named[1], "direction": direction}
    return (clean_text, corrupted_text), {"answer": answer, "wrong": wrong, "direction": direction}, said


def answer_patch(inquiry: Inquiry, progress: Progress) -> Answer:
    prompts, given, said = prompts_of(inquiry)
    values = inquiry.values
    patches_site = values["site"] is not None
    answer = patching(
        *prompts,
        **given,
        together=values["heads"] or (),
        grid=values["grid"] and not patches_site,
        progress=ignore if patches_site else progress,
    )
    site = answer_site(inquiry, prompts, given, progress) if patches_site else None
    return answer.to_arrays() | said | {"site": site}


def answer_site(
    inquiry: Inquiry, prompts: tuple[TextPass, TextPass], given: dict[str, Any], progress: Progress
) -> Answer:
    values, site = inquiry.values, find_site(inquiry.values["site"])
    answer = patch_site(
        *prompts,
        **given,
        site=site.name,
        each_position=values["positions"] == "each",
        neurons=values["neurons"],
        exact=values["method"] != "attribution",
        estimate=values["method"] != "exact",
        progress=progress,
    )
    numbers = answer.to_dict()
    return {"name": site.name, "hook": site.hook} | {
        name: numbers[name] for name in ("axes", "exact", "attribution", "correlation")
    }


ANSWER = TokenField("answer", "The token that the clean prompt leads to; the most probable by default.", default=None)
WRONG = TokenField(
    "wrong",
    "The token that the corrupted prompt leads to; by default the most probable other than `answer`.",
    default=None,
)
DIRECTION = Field(
    "direction",
    "`denoise` patches activations of the clean prompt into a run of the corrupted one, `noise` those of the "
    "corrupted prompt into a run of the clean one.",
    Literal["denoise", "noise"],
    default="denoise",
)


@dataclass(frozen=True)
class NeuronsField(Field):
    """MLP neurons, each as ``[layer, neuron]``."""

    kind: Any = list[list[int]]

    def parse(self, given: Mapping[str, Any], _subject: Subject) -> list[tuple[int, int]] | None:
        neurons = given.get(self.name)
        return None if neurons is None else [(layer, neuron) for layer, neuron in neurons]


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
        ANSWER,
        WRONG,
        MODEL,
        DIRECTION,
        HeadsField(
            "heads",
            "Heads to patch together, each as `[layer, head]`; their joint effect is `joint` in the answer.",
            default=None,
        ),
        Field("grid", "Patch every head and position separately; false requires `heads`.", bool, default=True),
        HEAD_MASK,
        Field(
            "site",
            "Patch every activation of this site separately, instead of heads and the residual stream. Names are those "
            "of TransformerLens, with or without its prefixes.",
            Literal[SITE_NAMES],
            default=None,
        ),
        Field(
            "positions", "Patch each position of the site separately, or all at once.", Literal["each", "all"], "each"
        ),
        NeuronsField("neurons", "The MLP neurons to patch, each as `[layer, neuron]`.", default=None),
        Field(
            "method",
            "How to measure a site: run the model for each activation (`exact`), approximate it by the gradient times "
            "the difference (`attribution`), or `both`, with their correlation.",
            Literal["exact", "attribution", "both"],
            default="exact",
        ),
    ],
    "The logit difference after patching in, from the other prompt, each head, the residual stream at each layer and "
    "position, and all given heads at once, or every activation of a site: 0 is corrupted, 1 is clean.",
    PatchAnswer,
    answer_patch,
    check_patch,
    less="shorter prompts, or patch all positions of a site at once",
)


def answer_patch_site(inquiry: Inquiry, progress: Progress) -> Answer:
    answer: Any = answer_patch(inquiry, progress)
    return {**answer, **answer["site"]}


# Without a site, heads are patched.
PATCH_PROMPTS = of_many(
    replace(
        PATCH,
        fields=[replace(each, default="z") if each.name == "site" else each for each in PATCH.fields],
        compute=answer_patch_site,
    ),
    "patch_site",
    fixed={"positions": "all", "grid": False},
)
