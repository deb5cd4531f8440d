"""A GPT in plain PyTorch, with the tools that inspect it."""

from .config import GPTConfig
from .drawing.trace import Trace
from .errors import (
    CheckpointError,
    ContextLengthExceeded,
    EmptyPrompt,
    InputError,
    PromptError,
    UnknownCharacters,
    UnknownTokens,
)
from .generate import GenerationRequest, Step
from .loaded import LoadedModel, load
from .sampling import SamplingSettings
from .serving.threads import choose_threads
from .serving.writer import BatchWriter
from .tokenizer import Token
from .view import AttentionView, view

__version__ = "0.2.0"

__all__ = [
    "AttentionView",
    "BatchWriter",
    "CheckpointError",
    "ContextLengthExceeded",
    "EmptyPrompt",
    "GPTConfig",
    "GenerationRequest",
    "InputError",
    "LoadedModel",
    "PromptError",
    "SamplingSettings",
    "Step",
    "Token",
    "Trace",
    "UnknownCharacters",
    "UnknownTokens",
    "choose_threads",
    "load",
    "view",
]
