"""Errors in checkpoints, prompts and arguments, with messages for the person who supplied them; a server's refusals."""

import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

MAX_FOUND = 500  # characters of a checkpoint's own content that an error repeats
MAX_SHOWN = 60  # characters of any other value that an error repeats


class Busy(Exception):
    """There is no room for a request; there may be in ``retry_seconds``."""

    def __init__(
        self, message: str = "Too many requests are waiting. Try again in a moment.", retry_seconds: int = 2
    ) -> None:
        super().__init__(message)
        self.retry_seconds = retry_seconds


class Closed(Exception):
    """No more requests are accepted."""

    def __init__(self) -> None:
        super().__init__("The server is shutting down.")


class OutOfTime(Exception):
    """The server allows no more time for this."""


class CheckpointError(Exception):
    """A checkpoint that cannot be used. Names the file, what was found in it and what was expected."""

    def __init__(self, file: str | Path, found: str, expected: str) -> None:
        if len(found) > MAX_FOUND:  # what is wrong with a long value may come before or after it
            found = f"{found[: MAX_FOUND * 4 // 5]} ... {found[-MAX_FOUND // 5 :]}"
        self.file, self.found, self.expected = readable(str(file)), readable(found), readable(expected)
        super().__init__(f"{self.file}: {self.reason}")

    @property
    def reason(self) -> str:
        """What is wrong, without the file."""
        return f"found {self.found}, expected {self.expected}"


class HubError(CheckpointError):
    """A repository on the Hugging Face Hub that cannot be downloaded. Names the repository and gives the reason."""

    def __init__(self, repository: str, reason: str) -> None:
        self.why = reason
        super().__init__(repository, reason, "a checkpoint")

    @property
    def reason(self) -> str:
        return self.why


class Mismatch(ValueError):
    """Invalid content in a checkpoint; becomes a ``CheckpointError`` once the file is known."""

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(f"found {found}, expected {expected}")
        self.found, self.expected = found, expected


class NotMultiple(Mismatch):
    """A field of a config that is no multiple of another one, ``unit``, as it has to be."""

    def __init__(self, field: str, value: int, unit: str, unit_value: int) -> None:
        super().__init__(f"{field} {value} with {unit} {unit_value}", f"{field} to be a multiple of {unit}")
        self.field, self.value, self.unit, self.unit_value = field, value, unit, unit_value


class InputError(ValueError):
    """A value that cannot be used: ``field`` names it, and ``code`` identifies the reason."""

    code = "invalid_value"

    def __init__(self, field: str, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.field, self.code = field, code or self.code

    def about(self, field: str) -> Self:
        """The same error, which names another field."""
        self.field = field
        return self


class InvalidValue(InputError):
    """A value that is not among the ``allowed`` ones."""

    def __init__(self, field: str, value: object, allowed: str) -> None:
        super().__init__(field, f"{field} must be {allowed}, found {shorten(value)}")
        self.value, self.expected = shorten(value, MAX_FOUND), allowed
        self.found = f"{field} {self.value}"  # for a ``CheckpointError``


class PromptError(InputError):
    """A prompt that the model cannot read."""

    code = "invalid_prompt"

    def __init__(self, message: str) -> None:
        super().__init__("prompt", message)


class EmptyPrompt(PromptError):
    """A prompt without tokens; ``noun`` is what the message calls it."""

    code = "empty_prompt"

    def __init__(self, noun: str = "prompt") -> None:
        super().__init__(f"The {noun} is empty: the model needs at least one token to start from.")


class UnknownCharacters(PromptError):
    """Characters missing from the model's alphabet, each once, in order of appearance; ``named`` lists them as text."""

    code = "unknown_characters"

    def __init__(self, characters: Sequence[str], alphabet: Sequence[str]) -> None:
        self.characters = tuple(characters)
        shown = ", ".join(ascii_name(c) for c in self.characters[:10])
        more = f" and {len(self.characters) - 10} more" if len(self.characters) > 10 else ""
        self.named = shown + more
        known = "".join(sorted(c for c in alphabet if c.isprintable() and c != " "))
        known = known if len(known) <= 100 else known[:100] + " ..."
        spaces = " spaces and" if " " in alphabet else ""
        super().__init__(
            f"This model reads single characters and has never seen {self.named}. It knows{spaces}: {known}"
        )


class NotOneToken(InputError):
    """A text that no token is exactly; ``pieces`` are the texts of the tokens that it takes."""

    def __init__(self, pieces: Sequence[str], field: str = "token") -> None:
        self.pieces = pieces
        shown = ", ".join(map(repr, pieces[:8])) + (", ..." if len(pieces) > 8 else "")
        found = f"{len(pieces)}: {shown}" if pieces else "none"
        hint = "The token of a word often includes the space before it."
        super().__init__(field, f"{field} must be a single token, found {found}. {hint}")


class UnknownTokens(PromptError):
    """Token ids outside the model's vocabulary, with the ``text`` of one that the tokenizer nevertheless has."""

    code = "unknown_token"

    def __init__(self, found: object, vocab_size: int, text: str = "") -> None:
        which = f", the token {shorten(text)}, which the tokenizer has and the model lacks" if text else ""
        super().__init__(f"Token ids must be integers from 0 to {vocab_size - 1}, found {shorten(found)}{which}.")


class ContextLengthExceeded(PromptError):
    """A prompt longer than the model can read at once; ``noun`` is what the message calls it."""

    code = "context_length_exceeded"

    def __init__(self, n_tokens: int, context_length: int, noun: str = "prompt") -> None:
        self.n_tokens, self.context_length = n_tokens, context_length
        super().__init__(f"The {noun} has {n_tokens} tokens, but this model reads at most {context_length} at once.")


def ascii_name(character: str) -> str:
    """A character in quotes, or its code point if it is not printable."""
    return f"'{character}'" if character.isprintable() else f"U+{ord(character):04X}"


def counted(number: int, noun: str) -> str:
    """A number and its noun, which is singular for one."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def readable(text: str) -> str:
    """``text`` with unencodable characters, such as a stray byte in a file name, escaped: ``\\udcff``."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def shorten(value: object, most: int = MAX_SHOWN) -> str:
    """A value as an error message repeats it, cut after ``most`` characters."""
    text = "".join(itertools.islice(written(value, most), most + 1))[: most + 1]
    return text if len(text) <= most else text[:most] + " ..."


def written(value: object, most: int) -> Iterator[str]:
    """A value from JSON, with strings as in Python, in non-empty pieces: a long one need not be built in full."""
    if type(value) is str:
        yield repr(value[: most + 1])
    elif type(value) is list or type(value) is dict:
        yield "[" if type(value) is list else "{"
        for i, item in enumerate(value):
            if i:
                yield ", "
            yield from written(item, most)
            if type(value) is dict:
                yield ": "
                yield from written(value[item], most)
        yield "]" if type(value) is list else "}"
    elif type(value) is int and value.bit_length() > 4 * most:
        yield "a very long number"
    elif value is None or type(value) is bool:
        yield json.dumps(value)
    else:
        yield repr(value)
