"""A GPT in plain PyTorch, and everything that looks inside it."""

from .checkpoint import load
from .config import GPTConfig
from .errors import CheckpointError, ContextLengthExceeded, EmptyPrompt, PromptError, UnknownCharacters, UnknownTokens
from .generate import Step
from .loaded import LoadedModel
from .threads import choose_threads
from .trace import Token, Trace

__all__ = [
    "CheckpointError",
    "ContextLengthExceeded",
    "EmptyPrompt",
    "GPTConfig",
    "LoadedModel",
    "PromptError",
    "Step",
    "Token",
    "Trace",
    "UnknownCharacters",
    "UnknownTokens",
    "choose_threads",
    "load",
]
