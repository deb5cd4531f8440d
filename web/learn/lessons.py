"""The lessons, rung by rung, by the name that the browser requests."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from ..serving.snapshots import Snapshots
from . import arithmetic, bigram, block, induction, kite, multi_head, self_attention, tokens_and_windows, whole_model
from .lesson_request import LessonRequest, StrictRequest
from .tokenized_sentence import WholeModelRequest


class Lesson(NamedTuple):
    """The fields of a request for a lesson, and the function that computes its numbers."""

    request: type[StrictRequest]
    compute: Callable[..., dict[str, object]]  # raises ``InputError``
    needs: Literal["models", "steps", "nothing"] = "models"  # the first argument of ``compute``

    def answer(self, snapshots: Snapshots, request: Any) -> dict[str, object]:
        """The numbers of the lesson. Raises ``InputError``."""
        if self.needs == "nothing":
            return self.compute(request)
        return self.compute(snapshots if self.needs == "steps" else snapshots.served, request)


LESSONS = {
    # Rung 1
    "tokens": Lesson(tokens_and_windows.TokensRequest, tokens_and_windows.tokens),
    # Rung 2
    "windows": Lesson(tokens_and_windows.WindowsRequest, tokens_and_windows.windows, "nothing"),
    # Rung 3
    "untrained-bigram": Lesson(LessonRequest, bigram.before_training),
    # Rung 4
    "averages": Lesson(self_attention.AveragesRequest, self_attention.averages_of_the_past),
    # Rung 5
    "self-attention": Lesson(self_attention.SelfAttentionRequest, self_attention.without_weights),
    # Rung 6
    "trainable-weights": Lesson(self_attention.TrainableWeightsRequest, self_attention.with_trainable_weights),
    "transfer": Lesson(self_attention.TransferRequest, self_attention.transferred_weights),
    "scale": Lesson(self_attention.ScaleRequest, self_attention.scaled_scores, "nothing"),
    # Rung 7
    "causal-masking": Lesson(multi_head.CausalMaskingRequest, multi_head.causal),
    # Rung 8
    "many-heads": Lesson(multi_head.ManyHeadsRequest, multi_head.multi_head),
    "times": Lesson(multi_head.TimesRequest, multi_head.running_times, "nothing"),
    # Rung 9
    "block": Lesson(block.BlockRequest, block.rest_of_a_block),
    # Rung 10
    "whole-model": Lesson(WholeModelRequest, whole_model.whole_model),
    "draw": Lesson(whole_model.DrawRequest, whole_model.draw),
    # Rungs 10 and 11
    "kite": Lesson(kite.KiteRequest, kite.kite),
    # Rung 11
    "induction": Lesson(induction.InductionRequest, induction.induction, "steps"),
    # All rungs: how a number is computed
    "cell": Lesson(arithmetic.CellRequest, arithmetic.one_cell),
    "number": Lesson(arithmetic.NumberRequest, arithmetic.one_number),
}
