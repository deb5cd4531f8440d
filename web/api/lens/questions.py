"""The questions of Ask, a row each: the route, what may be asked, and what computes the answer.

How to add one, once its function is in ``model/lens/questions/``:

1. ``schema.py``: the body, a subclass of ``TextBody`` (about a text: ``POST``) or of ``ModelBody`` (about the model
   alone: ``GET``, its fields are the query), and the answer, a subclass of ``TextAnswer`` or ``ModelAnswer``.
2. Here: a function from ``(asked, progress)`` to the answer, as a dict with NumPy arrays for lists of numbers, and a
   row in ``QUESTIONS``. The fields of the body that are its own arrive as ``asked.parameters``. Give the row a ``read``
   to check or convert them before the question joins the queue; it raises ``InputError`` and returns JSON, which is
   also the key under which the answer is kept.
3. ``endpoints.py``: the endpoint for gradio_client and MCP.

``asked.text`` is the pass over the text in float32 and ``asked.gpt`` the float32 model; both are made when first used
and shared with other questions. The model's name, the tokens and the precision are added to every answer. Errors,
limits, cancelling, ``"stream": true`` and the metrics come with the row; ``tests/http/lens`` runs its checks over all
rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from model import LoadedModel
from model.errors import InvalidValue
from model.lens.copying import CLEAR_COPYING
from model.lens.head_roles import CLEAR_ROLE, CLEAR_TIMES_UNIFORM
from model.lens.questions.knockout import knockout, removal
from model.lens.questions.progress import Progress
from model.lens.questions.text_pass import heads_by_layer

from ...questions.roles import describe_heads, measure_roles
from ...questions.service import Answer, Asked
from ...settings import Limits
from .circuits import (
    answer_composition,
    answer_difference,
    answer_patch,
    answer_paths,
    answer_role_paths,
    read_composition,
    read_difference,
    read_patch,
    read_paths,
    read_role_paths,
)
from .circuits_schema import (
    CompositionAnswer,
    CompositionBody,
    DifferenceAnswer,
    DifferenceBody,
    PatchAnswer,
    PatchBody,
    PathsAnswer,
    PathsBody,
    RolePathsAnswer,
    RolePathsBody,
)
from .passages import answer_passages, read_passages
from .passages_schema import PassagesAnswer, PassagesBody
from .prediction import (
    answer_attribution,
    answer_head,
    answer_ledger,
    answer_logit_lens,
    read_attribution,
    read_head,
    read_ledger,
    read_logit_lens,
)
from .prediction_schema import (
    AttributionAnswer,
    AttributionBody,
    HeadAnswer,
    HeadBody,
    LedgerAnswer,
    LedgerBody,
    LogitLensAnswer,
    LogitLensBody,
)
from .schema import KnockoutAnswer, KnockoutBody, ModelBody, RemovalAnswer, RemovalBody, RolesAnswer, TextBody, pairs

Parameters = dict[str, Any]  # JSON


def own_fields(_limits: Limits, _loaded: LoadedModel, _ids: list[int], body: ModelBody) -> Parameters:
    """The fields of a body that other questions do not have; null stands for the default."""
    fields = type(body).model_fields
    names = fields.keys() - TextBody.model_fields.keys()
    values = {name: getattr(body, name) for name in sorted(names)}
    return {name: fields[name].default if value is None else value for name, value in values.items()}


@dataclass(frozen=True)
class Question:
    """A row. ``read`` is called with the limits, the model, the token ids (none for a ``ModelBody``) and the body."""

    name: str  # its route is /v1/lens/NAME
    summary: str
    body: type[ModelBody]
    answer: type[BaseModel]
    compute: Callable[[Asked, Progress], Answer]
    read: Callable[[Limits, LoadedModel, list[int], Any], Parameters] = own_fields
    reads_long_texts: bool = False  # which take longer than any other answer may

    def max_seconds(self, limits: Limits) -> int:
        """How long the answer may take."""
        return limits.max_reading_seconds if self.reads_long_texts else limits.max_seconds

    @property
    def is_about_text(self) -> bool:
        return issubclass(self.body, TextBody)

    @property
    def path(self) -> str:
        return f"/lens/{self.name}"

    @property
    def method(self) -> str:
        return "POST" if self.is_about_text or self.body is PassagesBody else "GET"


def read_knockout(limits: Limits, loaded: LoadedModel, ids: list[int], body: KnockoutBody) -> Parameters:
    parameters = own_fields(limits, loaded, ids, body)
    n_numbers = loaded.config.n_layer * loaded.config.n_head * (len(ids) - 1)
    check_length(ids)
    if body.per_token and n_numbers > limits.max_json_weights:
        allowed = (
            f"false for this text: these are {n_numbers:,} numbers, and at most {limits.max_json_weights:,} are sent"
        )
        raise InvalidValue("per_token", True, allowed)
    return parameters


def check_length(ids: list[int]) -> None:
    if len(ids) < 2:
        raise InvalidValue(
            "prompt", f"{len(ids)} token", "at least two tokens: the loss is that of the second and later"
        )


def read_removal(limits: Limits, loaded: LoadedModel, ids: list[int], body: RemovalBody) -> Parameters:
    check_length(ids)
    heads_by_layer(loaded.config, pairs(body.heads))
    return own_fields(limits, loaded, ids, body)


def answer_removal(asked: Asked, progress: Progress) -> Answer:
    method, heads = asked.parameters["method"], asked.parameters["heads"]
    found = removal(asked.text, pairs(heads), method=method)
    progress(1)
    losses = {"loss": found.loss, "delta": found.delta}
    return {"method": method, "heads": heads, **losses} | {
        "token_loss": found.token_loss.numpy(),
        "token_delta": found.token_delta.numpy(),
    }


def answer_knockout(asked: Asked, progress: Progress) -> Answer:
    method, per_token = asked.parameters["method"], asked.parameters["per_token"]
    found = knockout(asked.text, method=method, progress=progress)
    answer: Answer = {"method": method, "loss": found.loss, "delta": found.delta.numpy()}
    if per_token:
        answer |= {"token_loss": found.token_loss.numpy(), "token_delta": found.token_delta.numpy()}
    return answer


def answer_roles(asked: Asked, progress: Progress) -> Answer:
    measured = measure_roles(asked.questions, asked.loaded, progress)
    least = max(CLEAR_ROLE, CLEAR_TIMES_UNIFORM * measured["uniform"])
    return {"threshold": least, "copying_threshold": CLEAR_COPYING, "heads": describe_heads(measured)}


QUESTIONS = [
    Question(
        "roles",
        "What each head looks at, beside uniform attention, and whether it copies what it looks at.",
        ModelBody,
        RolesAnswer,
        answer_roles,
    ),
    Question(
        "knockout",
        "How much worse the text is predicted without each head.",
        KnockoutBody,
        KnockoutAnswer,
        answer_knockout,
        read_knockout,
    ),
    Question(
        "removal",
        "How much worse the text is predicted without several heads at once.",
        RemovalBody,
        RemovalAnswer,
        answer_removal,
        read_removal,
    ),
    Question(
        "attribution",
        "What every head, MLP, the embedding and the biases add to the logit of a next token.",
        AttributionBody,
        AttributionAnswer,
        answer_attribution,
        read_attribution,
    ),
    Question(
        "head",
        "What one head takes from each token for one prediction, in four measures.",
        HeadBody,
        HeadAnswer,
        answer_head,
        read_head,
    ),
    Question(
        "logit-lens",
        "What each layer would have predicted, had it been the last.",
        LogitLensBody,
        LogitLensAnswer,
        answer_logit_lens,
        read_logit_lens,
    ),
    Question(
        "ledger",
        "Every number between one query, one key of a head and the logit of the next token.",
        LedgerBody,
        LedgerAnswer,
        answer_ledger,
        read_ledger,
    ),
    Question(
        "patch",
        "Which heads and positions carry what two prompts differ in: activations of one put into the other.",
        PatchBody,
        PatchAnswer,
        answer_patch,
        read_patch,
    ),
    Question(
        "composition",
        "How strongly the weights of each head read what each earlier head writes.",
        CompositionBody,
        CompositionAnswer,
        answer_composition,
        read_composition,
    ),
    Question(
        "paths",
        "What changes in a head if it does not see what one earlier head wrote.",
        PathsBody,
        PathsAnswer,
        answer_paths,
        read_paths,
    ),
    Question(
        "role-paths",
        "How well a head keeps its role if it does not see what one earlier head wrote.",
        RolePathsBody,
        RolePathsAnswer,
        answer_role_paths,
        read_role_paths,
    ),
    Question(
        "difference",
        "How differently each head attends in two texts, two models or two training steps.",
        DifferenceBody,
        DifferenceAnswer,
        answer_difference,
        read_difference,
    ),
    Question(
        "passages",
        "Where in a long text each head acts most strongly, and a map of heads that behave alike.",
        PassagesBody,
        PassagesAnswer,
        answer_passages,
        read_passages,
        reads_long_texts=True,
    ),
]
