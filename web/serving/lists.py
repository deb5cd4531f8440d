"""Lists in the bodies of the page's routes: only the first wrong item of one is looked at.

A large body must not keep the server busy with its mistakes.
"""

from typing import Annotated

from pydantic import AfterValidator, FailFast, Field
from typing_extensions import TypeAliasType


def without_surrogates(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"half a character at position {error.start:,}") from None
    return text


TokenIds = TypeAliasType("TokenIds", Annotated[list[int], FailFast()])
Row = Annotated[list[float], FailFast(), Field(max_length=1_000)]
HeadMask = TypeAliasType("HeadMask", Annotated[list[Row], FailFast(), Field(max_length=1_000)])
Piece = Annotated[tuple[int, int, int, int, bool], FailFast()]
Pieces = TypeAliasType("Pieces", Annotated[list[Piece], FailFast()])
Unicode = Annotated[str, AfterValidator(without_surrogates)]  # JSON can spell half a character, and nothing can send it
