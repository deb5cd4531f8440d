"""The services that the page, the API and the Learn tab share."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from model.checkpoint.load import choose_device
from model.drawing.summary import compile_summaries
from model.gpt import GPT
from model.serving.choose_reader import choose_reader
from model.serving.reader import Reader

from .ask.head_roles import prepare_roles
from .ask.score_steps import prepare_step_scores
from .ask.service import AnswerService
from .gauges import Gauges
from .prometheus import Metrics
from .runs.openings import Openings
from .runs.store import Runs
from .serving.budget import Budget, budget_for
from .serving.chat_templates import Templates
from .serving.engine_addresses import parse_addresses
from .serving.engines import Engines
from .serving.fair_pool import FairThreads
from .serving.process_memory import freeze_objects, trim_heap
from .serving.served_models import ServedModels
from .serving.snapshots import Snapshots
from .serving.uncollected_answers import UncollectedAnswers
from .settings import Limits, Settings, check_address

PAGE_PLACES = 2  # what the page asks for beyond texts, computed at the same time: weights, logits, lessons
SNAPSHOT_PLACES = 2  # training steps that texts are read with at the same time


@dataclass(frozen=True)
class Services:
    """The objects that routes and tabs share."""

    served: ServedModels
    snapshots: Snapshots
    runs: Runs
    openings: Openings
    engines: Engines
    trace_pool: FairThreads  # for what /v1 computes over whole texts: attention weights, activations, embeddings
    page_pool: FairThreads  # for numbers of a text that were not recorded, lessons, and texts to train on
    snapshot_pool: FairThreads  # for texts read with the weights of a training step, which may be downloaded first
    answers: AnswerService
    metrics: Metrics
    budget: Budget
    uncollected_answers: UncollectedAnswers
    templates: Templates = field(default_factory=Templates)
    is_training: threading.Event = field(default_factory=threading.Event)  # set while a visitor trains a GPT
    # Called with the seconds of grace that are left, once texts have ended, by the objects built on these services.
    closers: list[Callable[[float], None]] = field(default_factory=list)

    @property
    def limits(self) -> Limits:
        return self.served.settings.limits

    def forget(self, visitor: str) -> None:
        """Remove the model that a visitor trained, and everything made with it."""
        loaded = self.served.private.remove(visitor)
        if loaded is None:
            return
        self.engines.remove(loaded)
        self.openings.forget(loaded.name)
        self.snapshots.forget(loaded.name)
        self.runs.forget(loaded.name)
        self.answers.forget(loaded)

    def load(self) -> None:
        """Load the checkpoints, write their openings, and start measuring the roles of their heads."""
        self.served.load()
        trim_heap()  # frees the memory from which the weights were converted
        self.openings.write_all()
        self.engines.prepare(self.served.models.values())
        prepare_roles(self.answers, self.served.models.values(), self.engines.are_busy)
        prepare_step_scores(self.answers, self.snapshots, self.engines.are_busy)

    def load_and_freeze(self) -> None:
        """Like ``load``, but also exempts all objects from garbage collection, as suits a process of its own."""
        self.engines.tidy_up = freeze_objects
        self.load()
        freeze_objects()

    def close(self, grace: float = 0.0) -> None:
        """Accept no more requests, give texts and trainings ``grace`` seconds, and return when all have ended."""
        until = time.monotonic() + grace
        self.answers.close()
        self.templates.close()
        self.engines.close(grace)
        for close in self.closers:
            close(max(0.0, until - time.monotonic()))


def check(settings: Settings) -> None:
    """Raise ``ValueError`` or ``OSError`` for a device, port or engine address that cannot be used."""
    choose_device(settings.device)
    check_address(settings.host, settings.port)
    parse_addresses(settings)


def make_services(settings: Settings) -> Services:
    """Everything but the models, which ``Services.load`` loads. Raises ``ValueError`` for an invalid engine address."""
    served = ServedModels(settings)
    budget, metrics = budget_for(settings.limits), Metrics(served.private.name_in_metrics)
    runs = Runs(may_see=served.private.may_see, spare=lambda: budget.free)
    budget.make_room = runs.trim

    def make_reader(gpt: GPT, n_slots: int) -> Reader | None:
        reader = choose_reader(gpt, n_slots, settings.cache)
        compile_summaries()  # afterwards, because a text can be written without them
        return reader

    engines = Engines(
        settings.limits,
        metrics,
        parse_addresses(settings),
        make_reader if settings.kernels else None,
        zero_gpu=settings.zero_gpu,
    )
    answers = AnswerService(settings.limits, metrics, settings.cache)
    metrics.registry.register(Gauges(engines, runs, answers, budget, metrics.model_name))
    return Services(
        served=served,
        snapshots=Snapshots(served, runs.forget_read_with, answers.forget),
        runs=runs,
        openings=Openings(served, runs),
        engines=engines,
        trace_pool=FairThreads(settings.limits.max_attention_requests, settings.limits.max_waiting),
        page_pool=FairThreads(PAGE_PLACES, settings.limits.max_waiting),
        snapshot_pool=FairThreads(SNAPSHOT_PLACES, settings.limits.max_waiting),
        answers=answers,
        metrics=metrics,
        budget=budget,
        uncollected_answers=UncollectedAnswers(budget),
    )
