"""Types for the fields of JSON bodies, on the page's routes and under /v1.

Lists are checked only up to the first invalid item, so that collecting the errors of a large body cannot keep the
server busy.
"""

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, FailFast, Field
from pydantic.annotated_handlers import GetJsonSchemaHandler
from pydantic_core import CoreSchema
from typing_extensions import TypeAliasType

from model.loaded import MAX_HEAD_SCALE

from .serving.inputs import whole


class Also:
    """Additions to a JSON schema for rules that are checked elsewhere, which pydantic does not know."""

    def __init__(self, **words: Any) -> None:
        self.words = words

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return handler(core) | self.words


def whole_numbers(values: Any) -> Any:
    """Apply ``whole`` to each item of a list; other values are returned unchanged."""
    if isinstance(values, list) and any(type(value) is float for value in values):
        return [whole(value) for value in values]
    return values


def without_surrogates(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"half of a surrogate pair at position {error.start:,}") from None
    return text


MAX_ITEMS = Field(max_length=1_000)  # items of a list; the actual limits are lower and are checked elsewhere
NotEmpty = Also(minItems=1)
Whole = BeforeValidator(whole_numbers)
TokenIds = TypeAliasType("TokenIds", Annotated[list[Annotated[int, Field(ge=0)]], FailFast(), Whole, NotEmpty])
Scale = Annotated[float, Field(ge=-MAX_HEAD_SCALE, le=MAX_HEAD_SCALE)]
HeadMask = TypeAliasType(
    "HeadMask", Annotated[list[Annotated[list[Scale], FailFast(), MAX_ITEMS]], FailFast(), MAX_ITEMS]
)
Unicode = Annotated[str, AfterValidator(without_surrogates)]  # JSON escapes can hold lone surrogates, UTF-8 cannot
