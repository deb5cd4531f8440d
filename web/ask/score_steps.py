"""Head scores along the training steps of Hub models, computed in the background and stored on disk."""

import hashlib
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import model
from model.lens.head_roles import role_scores
from model.lens.progress import Cancelled, Progress

from ..serving.process_memory import trim_heap
from ..serving.snapshots import Snapshots
from ..serving.step_scores import StepRow
from .head_roles import VERSION, is_grid, while_idle
from .question_runner import lower_priority
from .service import AnswerService


def prepare_step_scores(service: AnswerService, snapshots: Snapshots, is_busy: Callable[[], bool]) -> None:
    """Score steps spread over each training and all that are opened, in the background while no text is written."""
    served, scores = snapshots.served, snapshots.scores
    trainings = {name: steps for name, steps in served.revisions.items() if name in served.shared}
    for name, revisions in trainings.items():
        stored = service.disk.get(scores_file(snapshots, name)) or {}
        rows = {step: stored[revision.commit] for step, revision in revisions.items() if revision.commit in stored}
        scores.load(name, {step: row for step, row in rows.items() if has_scores(row, served.shared[name])})
        for step in reversed(spread(list(revisions), service.limits.max_scored_steps)):
            scores.request(name, step)
    if trainings:
        arguments = [service, snapshots, while_idle(service, is_busy)]
        threading.Thread(target=score_in_turn, args=arguments, name="step scores", daemon=True).start()


def spread(steps: Sequence[int], most: int) -> list[int]:
    """At most ``most`` of the steps, evenly spaced along the slider: the last, then the others in order."""
    n = min(len(steps), most)
    return [*steps[-1:], *(steps[i * (len(steps) - 1) // (n - 1)] for i in range(n - 1))] if n else []


def score_in_turn(service: AnswerService, snapshots: Snapshots, wait: Progress) -> None:
    """The background thread: the step that was asked for last comes first."""
    lower_priority()
    with suppress(Cancelled):
        while True:
            name, step = snapshots.scores.next()
            wait(0)
            row: StepRow | None = None
            # The error is reported when somebody opens the step.
            with suppress(model.CheckpointError, ValueError, ArithmeticError, RuntimeError, OSError, MemoryError):
                with snapshots.served.files(name, step) as files, snapshots.loading:
                    loaded = model.load(files, device=snapshots.served.settings.device, dtype="float32")
                scores = role_scores(loaded, progress=wait).rounded()
                row = {"induction": scores["induction"], "previous_token": scores["previous_token"]}
                del loaded
            snapshots.scores.record(name, step, row)
            if row is not None:
                revisions, rows = snapshots.served.revisions[name], snapshots.scores.rows(name)
                service.disk.put(scores_file(snapshots, name), {revisions[step].commit: rows[step] for step in rows})
            trim_heap()


def scores_file(snapshots: Snapshots, name: str) -> str:
    """The file that keeps the scores of a model's steps by the hash of their commits."""
    source = str(snapshots.served.sources[name])
    return f"steps-{VERSION}-{hashlib.sha256(source.encode()).hexdigest()[:32]}"


def has_scores(row: Any, loaded: model.LoadedModel) -> bool:
    """Whether the content of a file has scores for all heads of this model."""
    return isinstance(row, dict) and all(is_grid(row.get(role), loaded) for role in ("induction", "previous_token"))
