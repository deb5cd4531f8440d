"""Bodies and answers of the questions about how heads work together: patching, composition, paths, differences."""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from ...serving.inputs import whole
from ..schema import ONE_TEXT, Also, Indexed, TokenIds, one_of
from .schema import AnswerToken, Heads, ModelAnswer, ModelBody, TextAnswer, TextBody

PerHead = list[list[float]]  # [layer][head]
TokenName = Annotated[str | int | None, BeforeValidator(whole)]  # its text, or its id
Score = dict[Literal["q", "k", "v"], PerHead]


class PatchBody(TextBody):
    """``prompt`` is the clean text; activations of it are put into a run of the corrupted one."""

    model_config = ConfigDict(json_schema_extra={"allOf": [ONE_TEXT, one_of("corrupted", "corrupted_tokens")]})

    corrupted: Annotated[str, Also(minLength=1)] | None = Field(
        None, description="A text of as many tokens that leads to another answer."
    )
    corrupted_tokens: TokenIds | None = Field(None, description="Token ids, instead of a corrupted text.")
    answer: TokenName = Field(
        None, description="The token that the clean prompt leads to, as text or as an id; by default the most probable."
    )
    wrong: TokenName = Field(
        None,
        description="The token that the corrupted prompt leads to; by default the most probable that is not `answer`.",
    )
    direction: Literal["denoise", "noise"] | None = Field(
        "denoise",
        description="`denoise`: activations of the clean prompt into the corrupted run; `noise`: the other way round.",
    )
    heads: Heads | None = Field(
        None, description="Heads to patch together, each as `[layer, head]`; the answer then has `joint`."
    )
    grid: bool | None = Field(True, description="Patch every head and position alone; false needs `heads`.")


class CompositionBody(ModelBody):
    centred: bool | None = Field(False, description="Also fold in the layer norm's subtraction of the mean.")


class PathsBody(TextBody):
    layer: Indexed = Field(description="Of the later head, counted from 0.")
    head: Indexed = Field(description="Counted from 0.")


class RolePathsBody(ModelBody):
    layer: int = Field(description="Of the later head, counted from 0.")
    head: int = Field(description="Counted from 0.")
    way: Literal["q", "k"] | None = Field("k", description="Cut the paths into its queries or into its keys.")


class DifferenceBody(TextBody):
    other: str | None = Field(None, description="Another text; by default the same.")
    other_tokens: TokenIds | None = Field(None, description="Token ids, instead of another text.")
    other_model: str | None = Field(
        None, description="Another model with as many layers and heads, or a training step (`NAME@STEP`)."
    )


class Patched(BaseModel):
    heads: PerHead | None = Field(description="`[layer][head]`: one head's context vectors at all positions.")
    residual: list[list[float]] | None = Field(
        description="`[n_layer + 1][position]`: the residual stream before a layer, at one position; last, after all."
    )
    joint: float | None = Field(description="The heads that were asked for, all at once.")


class PatchAnswer(TextAnswer, Patched):
    """The patches are normalised: 0 is the corrupted prompt, 1 the clean one, in either direction."""

    corrupted_tokens: list[AnswerToken]
    answer: AnswerToken
    wrong: AnswerToken
    direction: str
    clean: float = Field(description="The logit of the answer minus that of the wrong token, in the clean run.")
    corrupted: float = Field(description="The same in the corrupted run.")
    raw: Patched = Field(description="The logit differences themselves.")


class BaselineScores(BaseModel):
    mean: float
    spread: float = Field(description="Their standard deviation.")


class CompositionBaseline(BaseModel):
    """Random heads: weights drawn independently from one normal distribution."""

    q: BaselineScores
    k: BaselineScores
    v: BaselineScores
    heads: int = Field(description="How many were drawn; each is paired with as many others.")
    seed: int


class CompositionAnswer(ModelAnswer):
    """`[later layer][later head][earlier layer][earlier head]`, with the gain of the layer norms folded in."""

    q: list[list[list[list[float]]]]
    k: list[list[list[list[float]]]]
    v: list[list[list[list[float]]]]
    baseline: CompositionBaseline
    centred: bool


class PathsAnswer(TextAnswer):
    """By way, `[earlier layer][earlier head]`: what cutting that one path changes in the later head."""

    layer: int
    head: int
    direct: Score = Field(description="The path straight through the residual stream.")
    every: Score = Field(description="All paths, also through the layers between.")


class RoleScores(BaseModel):
    """By role; `[earlier layer][earlier head]` where a path is cut."""

    previous_token: PerHead
    duplicate_token: PerHead
    induction: PerHead


class RoleScore(BaseModel):
    previous_token: float
    duplicate_token: float
    induction: float


class RolePathsAnswer(ModelAnswer):
    layer: int
    head: int
    way: str
    plain: RoleScore
    direct: RoleScores
    every: RoleScores
    uniform: float = Field(description="What a head that attends to all tokens equally would score.")


class DifferenceAnswer(TextAnswer):
    other_model: str
    other_tokens: list[AnswerToken]
    pairs: list[tuple[int, int]] = Field(description="The positions that are compared.")
    heads: PerHead = Field(description="The mean total variation distance of the rows of attention weights, 0 to 1.")
    most: list[list[int]] = Field(description="`[layer][head]`: the index in `pairs` of the query that differs most.")
    largest: list[tuple[int, int]] = Field(description="All heads as layer and head, the most different first.")
