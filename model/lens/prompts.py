"""A question asked of many prompts: every row, the mean over the rows, and its standard error."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypedDict, TypeVar

import numpy as np
import torch
from torch import Tensor

from ..drawing.heat_map import Part, in_digits
from ..errors import InputError, InvalidValue, shorten
from .answer import Answer, NotSent, left_out_in_words
from .attribution import attribution
from .difference import difference
from .head_roles import LOOKS, standard_error, text_roles
from .interventions.knockout import knockout, removal
from .interventions.patching import patch, patch_site
from .interventions.paths import INTO, ROUTES, patch_paths
from .lens import HasLens, Lens, call_question
from .logit_lens import logit_lens
from .one_head import head
from .progress import Progress, ignore, parts
from .question import Option, Reads
from .text_pass import Text

Numbers = dict[str, Any]  # by name: a number, or nested lists, arrays or tensors of them
Row = Text | Mapping[str, Any]  # a prompt, or a prompt with the columns corrupted, answer and wrong
AnyRow = TypeVar("AnyRow")
AboutPrompts = Literal[
    "knockout",
    "removal",
    "attribution",
    "head",
    "logit_lens",
    "patch",
    "patch_site",
    "patch_paths",
    "text_roles",
    "difference",
]
# The columns of a row besides its prompt.
COLUMNS = {
    "corrupted": Option("corrupted", str, None, "A prompt that leads to another answer.", reads=Reads.TEXT),
    "answer": Option("answer", str | int, None, "The token that the prompt leads to.", reads=Reads.TOKEN),
    "wrong": Option("wrong", str | int, None, "The token that the corrupted prompt leads to.", reads=Reads.TOKEN),
}


@dataclass(frozen=True)
class Averaged:
    """A question that is asked of many prompts, and which numbers of its answers are averaged.

    ``numbers`` extracts them from an answer. ``columns`` maps a column of the rows to the argument of the question that
    it stands for; those in ``required`` must be given. ``fixed`` are arguments that are the same for every prompt, and
    ``defaults`` those of options that differ from the question's own. If it ``resamples``, the method "resample"
    without a reference takes each row's corrupted prompt for one.
    """

    question: Callable[..., Answer]
    numbers: Callable[[Mapping[str, Any]], Numbers]
    columns: Mapping[str, str] = field(default_factory=dict)
    required: Sequence[str] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    resamples: bool = False

    @property
    def reads(self) -> list[str]:
        """The columns that are read besides the prompt."""
        return ["corrupted"] if self.resamples else list(self.columns)

    def arguments(self, row: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments for a row: those of its columns, and ``options``, which are the same for every prompt."""
        given = dict(options) | {argument: row[column] for column, argument in self.columns.items()}
        is_resampled = self.resamples and given.get("method") == "resample" and given.get("reference") is None
        return given | {"reference": [row["corrupted"]]} if is_resampled and row["corrupted"] is not None else given


def is_by_position(options: Mapping[str, Any]) -> bool:
    """Whether the answer has a number for each position of a site, so that the rows must be of one length."""
    return options.get("positions") == "each" and options.get("site") is not None


def check_as_long(ids: Sequence[int], first: Sequence[int]) -> None:
    """Raise ``InputError`` for a row that cannot be averaged position by position with the first row."""
    if len(ids) != len(first):
        found = f"This row has {len(ids):,} tokens and the first row {len(first):,}"
        raise InputError("prompts", f"{found}; a mean position by position needs rows with the same number of tokens.")


def only(*names: str) -> Callable[[Mapping[str, Any]], Numbers]:
    return lambda answer: {name: answer[name] for name in names}


def head_sums(answer: Mapping[str, Any]) -> Numbers:
    return {**answer["sums"], "without_head": answer["without_head"]["loss_change"]}


def last_readings(answer: Mapping[str, Any]) -> Numbers:
    """What each layer would have predicted after the last token, and where that is decided."""
    last = [readings[-1] for readings in answer["layers"]]
    return {name: [reading[name] for reading in last] for name in ("kl", "answer")} | {
        "decided": int(answer["decided"][-1])
    }


def patch_effects(answer: Mapping[str, Any]) -> Numbers:
    """The effects of patches, apart from those that were not requested."""
    answer = {**answer, **(answer.get("site") or {})}
    names = ("clean", "corrupted", "heads", "joint", "estimate", "exact")
    return {name: answer[name] for name in names if answer.get(name) is not None}


def path_effects(answer: Mapping[str, Any]) -> Numbers:
    """The effects of patched paths, named such as ``direct_q``."""
    by_way = {f"{route}_{way}": each for route in ROUTES for way, each in answer[route].items()}
    return {name: answer[name] for name in ("clean", "corrupted")} | by_way


PAIR = {name: name for name in ("corrupted", "answer", "wrong")}
# Prompts may differ in length, so activations are patched at all positions at once unless each is asked for.
OVER_PROMPTS: dict[AboutPrompts, Averaged] = {
    "knockout": Averaged(knockout, only("loss", "delta"), resamples=True),
    "removal": Averaged(removal, only("loss", "delta"), resamples=True),
    "attribution": Averaged(
        attribution,
        only("logit", "probability", "heads", "mlps", "embedding", "biases"),
        {"answer": "token", "wrong": "against"},
    ),
    "head": Averaged(head, head_sums, {"answer": "token"}),
    "logit_lens": Averaged(logit_lens, last_readings, {"answer": "token"}, fixed={"top": 1}),
    "patch": Averaged(patch, patch_effects, PAIR, ["corrupted"], {"grid": False}, {"positions": "all"}),
    "patch_site": Averaged(patch_site, patch_effects, PAIR, ["corrupted"], defaults={"positions": "all"}),
    "patch_paths": Averaged(patch_paths, path_effects, PAIR, ["corrupted"]),
    "text_roles": Averaged(text_roles, lambda answer: dict(answer["scores"])),
    "difference": Averaged(difference, only("heads"), {"corrupted": "other"}),
}


PER_HEAD = ("delta", "heads", "exact", "estimate", *LOOKS, *(f"{r}_{w}" for r in ROUTES for w in INTO))
AXES: dict[str, tuple[str, ...]] = dict.fromkeys(PER_HEAD, ("n_layer", "n_head")) | {
    "mlps": ("n_layer",),
    "kl": ("n_layer + 1",),
    "answer": ("n_layer + 1",),
}


@dataclass(frozen=True)
class OverPrompts(Answer):
    """The numbers of a question for many prompts, by name.

    ``n`` is the number of rows in the mean. ``standard_error`` is the standard deviation over these rows divided by the
    square root of their number, 0 for one row; it and ``mean`` are float64. ``rows`` has for each prompt its index,
    ``row``, and either its numbers or the ``error`` that kept it out of the mean. The names are ``loss`` and ``delta``
    for ``knockout`` and ``removal``; ``logit``, ``probability``, ``heads``, ``mlps``, ``embedding`` and ``biases`` for
    ``attribution``; ``weight``, ``norm``, ``attribution``, ``loss_change`` and ``without_head`` for ``head``; ``kl``,
    ``answer`` and ``decided`` for ``logit_lens``; ``clean``, ``corrupted`` and what was asked for of ``exact``,
    ``estimate``, ``heads`` and ``joint`` for ``patch`` and ``patch_site``; ``clean``, ``corrupted`` and such as
    ``direct_q`` for ``patch_paths``; the roles for ``text_roles``; and ``heads`` for ``difference``. ``axes`` are those
    of ``exact`` and ``estimate``, which depend on the site.
    """

    n: int
    mean: dict[str, Tensor]
    standard_error: dict[str, Tensor]
    rows: list[Numbers]
    axes: Annotated[dict[str, tuple[str, ...]], NotSent()] = field(default_factory=dict, repr=False)

    def axes_of(self, name: str) -> tuple[str, ...]:
        """The axes of a mean, as a table names them."""
        return self.axes.get(name) or AXES.get(name) or ("",) * self.mean[name].dim()

    @property
    def summary(self) -> str:
        left_out = left_out_in_words([row for row in self.rows if "error" in row], len(self.rows))
        large = {name: mean for name, mean in self.mean.items() if mean.dim() and mean.numel() and name != "kl"}
        peaks = [f"{name} {self.peak(mean, *self.axes_of(name))}" for name, mean in large.items()]
        single = [f"{name} {in_digits(float(mean))}" for name, mean in self.mean.items() if not mean.dim()]
        found = [f"{'The largest means' if peaks else 'The means'} over {self.n:,} rows: {'; '.join(peaks or single)}."]
        return " ".join([*found, *([left_out] if left_out else [])])

    def drawn(self) -> Iterator[Part]:
        """Each mean with its standard error, and what is a single number for each row."""
        for name, mean in self.mean.items():
            error = self.standard_error[name]
            axes = self.axes_of(name)
            if not mean.dim():
                yield Part(name, f"{in_digits(float(mean))} \u00b1 {in_digits(float(error))}")
            elif mean.numel():
                yield Part(f"mean {name}", mean, axes)
                yield Part(f"standard error of {name}", error, axes, folded="Standard errors")
        rows = [{name: np.asarray(each).item() for name, each in row.items() if not np.ndim(each)} for row in self.rows]
        yield Part("rows", rows)


class LeftOut(TypedDict):
    row: int
    error: str


def over_prompts(
    lens: Lens, /, question: AboutPrompts, prompts: Sequence[Row], *, progress: Progress = ignore, **options: Any
) -> OverPrompts:
    """A question about one text or two, asked of many prompts: every row, the mean, and its standard error.

    ``question`` is the name of the method, and ``options`` are its other arguments. A row is a text, or a
    dictionary with ``prompt`` and, where the question reads them, ``corrupted`` (another prompt), and ``answer``
    and ``wrong`` (the tokens that the two prompts lead to). Patches are at all positions at once, unless
    ``positions="each"`` asks for each; the mean is then position by position, over the rows with as many tokens as the
    first row, as those of one template have. The method "resample" without a ``reference`` takes each row's corrupted
    prompt for one.
    Raises ``InputError``, which names the row, before anything is computed if a row cannot be read.
    """
    about = check_question(question)
    fixed = {**about.defaults, **about.fixed}
    if question == "patch" and not options.get("heads") and not options.get("site"):
        fixed["grid"] = True  # every head is patched where nothing else was asked for
    rows = parse_rows(lens, prompts, about.reads, about.required, options.get("other_model"))

    by_position = is_by_position({**fixed, **options})
    first = lens.parse(rows[0]["prompt"]) if rows and by_position else []
    axes = dict[str, tuple[str, ...]]()

    def numbers(row: dict[str, Any], _progress: Progress) -> Numbers:
        if by_position:
            check_as_long(lens.parse(row["prompt"]), first)
        arguments = about.arguments(row, {**fixed, **options})
        content = call_question(about.question, lens, row["prompt"], **arguments).content()
        if "axes" in (site := content.get("site") or content):
            axes.update(dict.fromkeys(("exact", "estimate"), tuple(site["axes"])))
        return {name: as_tensor(each) for name, each in about.numbers(content).items()}

    return replace(average(list(each_row(rows, numbers, progress))), axes=axes, text_ids=tuple(first))


def parse_rows(
    lens: Lens,
    prompts: Sequence[Row],
    columns: Collection[str],
    required: Sequence[str],
    other_model: HasLens | None = None,
) -> list[dict[str, Any]]:
    """Rows as dictionaries with the prompt and ``columns``, in which a token is its id, and each text can be read:
    ``corrupted`` by ``other_model``, if there is one."""
    parsed = []
    readers = {"corrupted": lens if other_model is None else other_model.lens}
    for index, row in enumerate(prompts):
        given = row if isinstance(row, Mapping) else {"prompt": row}
        try:
            check_columns(given, required)
            names = ("prompt", *columns)
            parsed.append({name: parse_column(readers.get(name, lens), name, given.get(name)) for name in names})
        except InputError as error:
            raise in_row(index, error) from None
    return parsed


def parse_column(lens: Lens, name: str, value: Any) -> Any:
    if name != "prompt" and COLUMNS[name].reads == Reads.TOKEN:
        return lens.token_id(value, name)
    try:
        if value is not None:
            lens.parse(value)
    except InputError as error:
        raise error.about(name) from None
    return value


def each_row(
    rows: Sequence[AnyRow], answer_row: Callable[[AnyRow, Progress], Numbers], progress: Progress = ignore
) -> Iterator[Numbers]:
    """Ask about one row after another: the index of each, ``row``, with its numbers or an ``error``."""
    for index, (row, report) in enumerate(zip(rows, parts(progress, len(rows)), strict=True)):
        try:
            answer = answer_row(row, report)
        except InputError as error:  # such as two prompts with the same answer, which only the model can tell
            answer = {"error": str(error)}
        yield {"row": index, **answer}
        report(1)


def as_tensor(numbers: Any) -> Any:
    """Lists of numbers as a tensor; anything else as it is."""
    return torch.tensor(np.asarray(numbers)) if isinstance(numbers, list) else numbers


def average(rows: Sequence[Numbers]) -> OverPrompts:
    """The mean and the standard error over the rows of ``each_row``. Raises ``InputError`` if all have an error."""
    answered = [row for row in rows if "error" not in row]
    if not answered:
        reason = f" {rows[0]['error']}" if rows else ""
        raise InputError("prompts", f"No row could be answered.{reason}")
    for name, first in answered[0].items():
        if any(np.shape(row[name]) != np.shape(first) for row in answered):
            message = f"The rows cannot be averaged: {name} has a number for each token, and they differ in length."
            raise InputError("prompts", message)
    samples = {
        name: torch.from_numpy(np.stack([np.asarray(row[name], dtype=np.float64) for row in answered]))
        for name in answered[0]
        if name != "row"
    }
    return OverPrompts(
        len(answered),
        {name: each.mean(0) for name, each in samples.items()},
        {name: standard_error(each) for name, each in samples.items()},
        list(rows),
    )


def check_question(question: str) -> Averaged:
    """How a question is asked of many prompts. Raises ``InputError`` for one that cannot be."""
    if question not in OVER_PROMPTS:
        raise InvalidValue("question", question, f"one of {', '.join(OVER_PROMPTS)}")
    return OVER_PROMPTS[question]


def check_columns(row: Mapping[str, Any], required: Sequence[str]) -> None:
    """Raise ``InputError`` unless a row has known columns only, and those that are required."""
    for name in row:
        if name not in ("prompt", *COLUMNS):
            raise InputError(name, f"There is no column {shorten(name)}, only {', '.join(['prompt', *COLUMNS])}.")
    for name in ("prompt", *required):
        if row.get(name) is None:
            raise InputError(name, f"{name} is needed.")


def in_row(index: int, error: InputError) -> InputError:
    """The same error, naming the row that it is about."""
    return InputError(f"prompts[{index}].{error.field}", f"prompts[{index}]: {error}", error.code)
