"""What is left of a head's role on random tokens if it does not see the output of an earlier head."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal, TypedDict

import torch
from torch import Tensor

from ...drawing.heat_map import Part, in_digits
from ...errors import InvalidValue
from ..answer import Answer, NotSent, PerHead, SentAs, sent
from ..composition import Way
from ..head_roles import ROLES, Role, random_texts
from ..lens import Lens
from ..progress import Progress, ignore, parts
from ..question import HeadIndex, Layer
from ..text_pass import TextPass
from .paths import ROUTES, Route, as_family, head_weights, parts_of, without_each
from .reference import contexts_of


class RoleScore(TypedDict):
    previous_token: float
    duplicate_token: float
    induction: float


class CutRoleScores(TypedDict):
    """For each role, ``[earlier layer][earlier head]``: the later head's score with that path cut."""

    previous_token: PerHead
    duplicate_token: PerHead
    induction: PerHead


PerRole = Annotated[dict[Role, PerHead], SentAs(CutRoleScores)]


@dataclass(frozen=True)
class RoleCuts(Answer):
    """The head's role scores on random tokens that are repeated once, intact and with each path cut.

    How well a head of layer ``L`` fits each role, unchanged and with one path at a time cut.

    ``plain[role]`` is its score; ``cut[route][role]`` ``(L, n_head)`` holds the scores without each earlier head.
    ``uniform`` is the score of a head that attends to all tokens equally.
    """

    layer: int
    head: int
    way: Annotated[Way, SentAs(str)]
    plain: Annotated[dict[Role, float], SentAs(RoleScore), "The scores with no path cut."]
    cut: Annotated[dict[Route, dict[Role, Tensor]], NotSent()]
    uniform: Annotated[float, "The score of a head that attends to all tokens equally."]

    @property
    def summary(self) -> str:
        changes = {role: each - self.plain[role] for role, each in self.every.items()} if self.layer else {}
        said = [f"{role.replace('_', ' ')} without {self.peak(each)}" for role, each in changes.items()]
        return f"The largest changes of scores: {'; '.join(said)}." if said else "No head is earlier."

    def drawn(self) -> Iterator[Part]:
        """Each table by the change from the score with no path cut."""
        for each in as_family(super().drawn(), "paths"):
            plain = next((score for role, score in self.plain.items() if each.axes and each.name.endswith(role)), 0.0)
            said = f"The score with one path cut, coloured by its change from {in_digits(plain)}."
            yield each._replace(plain=plain, help=said) if each.axes else each

    @property
    @sent
    def direct(self) -> PerRole:
        return self.cut["direct"]

    @property
    @sent
    def mlps(self) -> PerRole:
        return self.cut["mlps"]

    @property
    @sent
    def every(self) -> PerRole:
        return self.cut["every"]


def role_paths(
    lens: Lens,
    layer: Layer,
    head: HeadIndex,
    *,
    way: Annotated[
        Literal["q", "k"], "Whether to cut the paths into the head's queries (`q`) or its keys (`k`)."
    ] = "k",
    progress: Progress = ignore,
) -> RoleCuts:
    """How well a head keeps its role if it does not see the output of one earlier head.

    See ``role_cuts``.
    """
    texts = [lens.pass_over(ids, None) for ids in random_texts(lens)]
    return role_cuts(texts, layer=layer, head=head, way=way, progress=progress)


@torch.no_grad()
def role_cuts(texts: list[TextPass], *, layer: int, head: int, way: Way = "k", progress: Progress = ignore) -> RoleCuts:
    """Score a head's roles while the path from each earlier head into its queries or keys (``way``, "q" or "k") is cut.

    ``texts`` have the same length and consist of random tokens, repeated once, as drawn by
    ``head_roles.repeated_tokens``. This demonstrates composition: an induction head finds the token after an earlier
    occurrence of its own because a previous-token head has written there which token came before (Elhage et al. 2021,
    Olsson et al. 2022). Without the output of that head, its score falls. The paths are cut as in ``cut_paths``, with
    the mean of each head over all of ``texts``. Raises ``InputError`` for another ``way`` or a head that does not
    exist.
    """
    if way not in ("q", "k"):
        raise InvalidValue("way", way, "'q' or 'k'")
    length, shape = len(texts[0].ids) // 2, (layer, texts[0].config.n_head)
    queries = torch.arange(length, 2 * length)

    def scores(text: TextPass, query: Tensor, key: Tensor) -> dict[Role, Tensor]:
        attention = head_weights(text, layer, query, key).cpu()
        return {role: attention[:, queries, queries - back(length)].mean(-1) for role, back in ROLES.items()}

    for text in texts:
        text.check_head(layer, head)
    mean = torch.stack([contexts_of(text).mean(1, keepdim=True) for text in texts]).mean(0)  # all have the same length
    plain: dict[Role, float] = dict.fromkeys(ROLES, 0.0)
    cut: dict[Route, dict[Role, Tensor]] = {route: {role: torch.zeros(shape) for role in ROLES} for route in ROUTES}
    for text, report in zip(texts, parts(progress, len(texts)), strict=True):
        own = parts_of(text, layer, head, text.stream[layer])
        for role, score in scores(text, own["q"], own["k"]).items():
            plain[role] += float(score) / len(texts)
        for route in ROUTES:
            for earlier, heads, x in without_each(text, layer, route, "mean", mean):
                vectors = own | {way: parts_of(text, layer, head, x)[way]}
                for role, score in scores(text, vectors["q"], vectors["k"]).items():
                    cut[route][role][earlier, heads] += score / len(texts)
        report(1)
    return RoleCuts(layer, head, way, plain, cut, uniform=float((1 / (queries + 1)).mean()))
