"""From text files to batches: random windows for training, consecutive ones for validation."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ..errors import counted
from ..tokenizer import END_OF_TEXT, BPETokenizer, CharTokenizer, Tokenizer

VALIDATION_FRACTION = 0.1  # the end of a single file; nanoGPT splits tiny Shakespeare the same way


@dataclass(frozen=True)
class Dataset:
    """The token ids of both splits, ``(n_tokens,)`` each.

    ``validation_bytes`` is the size of the validation documents in UTF-8, without delimiters; ``sha256`` is the hash of
    the files.
    """

    train: Tensor
    validation: Tensor
    validation_bytes: int
    sha256: str


def documents(text: str) -> list[str]:
    """Split a text at its ``<|endoftext|>`` lines; without any, the whole text is one document."""
    if END_OF_TEXT not in text:
        return [text]
    return [document for part in text.split(END_OF_TEXT) if (document := part.strip("\n"))]


def encode(tokenizer: Tokenizer, text: str) -> Tensor:
    """The token ids ``(n_tokens,)`` of ``text``. If the vocabulary has an end-of-text token, it ends each document."""
    end = tokenizer.special_tokens.get(END_OF_TEXT)
    ids: list[int] = []
    for document in documents(text) if end is not None else [text]:
        ids += tokenizer.encode(document)
        if end is not None:
            ids.append(end)
    return torch.tensor(ids, dtype=torch.int32)


def read_text(path: Path) -> str:
    """The text of a file. Raises ``ValueError`` if it is missing, unreadable, empty or not UTF-8."""
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 text ({error})") from None
    if not text:
        raise ValueError(f"{path}: the file is empty")
    return text


def load_text(data: Path, validation: Path | None) -> tuple[str, str, str]:
    """The training text, the validation text, and the SHA-256 of the files they were read from.

    Without a ``validation`` file, the last tenth of ``data``, in characters, is held out.
    """
    text = read_text(data)
    digest = hashlib.sha256(text.encode())
    if validation is None:
        cut = int(len(text) * (1 - VALIDATION_FRACTION))
        return text[:cut], text[cut:], digest.hexdigest()
    held_out = read_text(validation)
    digest.update(held_out.encode())
    return text, held_out, digest.hexdigest()


def train_tokenizer(kind: str, text: str, validation: str, vocab_size: int) -> CharTokenizer | BPETokenizer:
    """A vocabulary for ``text``: all characters of it and of the validation text, or ``vocab_size`` BPE tokens."""
    if kind == "char":
        return CharTokenizer.train(text + validation)
    return BPETokenizer.train(documents(text), vocab_size)


def make_dataset(tokenizer: Tokenizer, text: str, validation: str, sha256: str, context_length: int) -> Dataset:
    """Encode both splits. Raises ``ValueError`` if either is too short for a single window."""
    train_ids, validation_ids = encode(tokenizer, text), encode(tokenizer, validation)
    for name, ids in (("training", train_ids), ("validation", validation_ids)):
        least = context_length + 1 if name == "training" else 2
        if len(ids) < least:
            raise ValueError(f"the {name} text has {counted(len(ids), 'token')}, but at least {least} are needed")
    held_out = documents(validation) if tokenizer.special_tokens else [validation]
    return Dataset(train_ids, validation_ids, sum(len(document.encode()) for document in held_out), sha256)


def random_batch(
    ids: Tensor, batch_size: int, context_length: int, generator: torch.Generator, repeated: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Inputs and targets ``(batch_size, context_length)`` at random places; targets are inputs shifted by one.

    A fraction ``repeated`` of the windows holds random tokens of the text, repeated in a loop: they can only be
    predicted by looking back to the previous repetition.
    """
    places = torch.randint(len(ids) - context_length, (batch_size, 1), generator=generator)
    places = places + torch.arange(context_length + 1)
    if n_repeated := round(repeated * batch_size):
        half = (context_length + 1) // 2
        drawn = torch.randint(len(ids), (n_repeated, half), generator=generator)
        length = torch.randint(half // 8 + 1, half + 1, (n_repeated, 1), generator=generator)
        places[:n_repeated] = drawn.gather(1, torch.arange(context_length + 1) % length)
    windows = ids[places].long()
    return windows[:, :-1], windows[:, 1:]


def consecutive_batches(ids: Tensor, batch_size: int, context_length: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Inputs and targets from consecutive windows of ``ids``: every token but the first is a target exactly once."""
    inputs, targets = ids[:-1].long(), ids[1:].long()
    whole = len(inputs) // context_length * context_length
    x, y = inputs[:whole].view(-1, context_length), targets[:whole].view(-1, context_length)
    yield from zip(x.split(batch_size), y.split(batch_size), strict=True)
    if whole < len(inputs):
        yield inputs[None, whole:], targets[None, whole:]
