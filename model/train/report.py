"""The content of ``training.json``, and of the progress that a stopped run resumes from."""

from typing import Any, TypedDict

from ..lens.head_roles import RoundedScores


class Losses(TypedDict):
    """The losses at one validation, in nats per token."""

    step: int
    train_loss: float  # mean since the previous validation
    validation_loss: float


class HeadScores(RoundedScores):
    """The role scores of every head at one snapshot."""

    step: int


class Sample(TypedDict):
    """A text that the trained model generated, and everything needed to generate it again."""

    prompt: str
    prompt_tokens: list[int]
    seed: int
    temperature: float
    max_new_tokens: int
    text: str


class Progress(TypedDict):
    """The part of a run's state that is plain JSON."""

    step: int
    seconds: float
    best: float | None  # the lowest validation loss
    best_step: int  # after which it was measured, and whose weights are kept
    history: list[Losses]
    heads: list[HeadScores]
    recent_loss: float  # summed since the last validation
    recent_steps: int
    settings: dict[str, Any]
    data: str  # SHA-256 of the text


class Report(TypedDict):
    """The content of ``training.json``."""

    step: int
    seconds: float
    history: list[Losses]
    heads: list[HeadScores]
    settings: dict[str, Any]
    samples: list[Sample]
    finished: bool
    best_validation_loss: float | None
    best_step: int  # whose weights are the model's
    n_parameters: int
    data_sha256: str
    train_tokens: int
    validation_tokens: int
    validation_bytes: int
    autocast: str
    torch: str
    machine: str
