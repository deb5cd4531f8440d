"""What all answers of analyses have in common: numbers as plain data, and a drawing of them."""

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import fields
from typing import Any, ClassVar, Self

import numpy as np
from torch import Tensor

from ..drawing.heat_map import draw_numbers
from ..drawing.html import display
from ..tokenizer import Tokenizer, token_text


class Answer:
    """A base of frozen dataclasses with tensors, float32 on the CPU."""

    PER_HEAD: ClassVar[tuple[str, ...]] = ()  # the names of tensors ``(n_layer, n_head)``
    IS_BY_ITEM: ClassVar[bool] = False  # whether ``content`` lists tokens or heads, so that the fields are drawn too
    tokenizer: ClassVar[Tokenizer | None] = None  # of the model that answered, for the texts of tokens

    def with_texts(self, tokenizer: Tokenizer) -> Self:
        """The same answer, in whose ``content`` tokens have texts as well as ids."""
        answer = copy(self)
        object.__setattr__(answer, "tokenizer", tokenizer)
        return answer

    def named(self, ids: Iterable[int]) -> list[dict[str, Any]]:
        """Tokens as ``/v1/lens`` sends them."""
        if self.tokenizer is None:
            return [{"id": token_id} for token_id in ids]
        return [{"id": token_id, "text": token_text(self.tokenizer, token_id)} for token_id in ids]

    def numbers(self) -> dict[str, Any]:
        """The fields by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def content(self) -> dict[str, Any]:
        """What ``/v1/lens`` sends, with tensors in place of lists."""
        return self.numbers()

    def to_dict(self) -> dict[str, Any]:
        """The same with nested lists of numbers, ready for JSON."""
        return with_tensors_as(lambda numbers: numbers.tolist(), self.content())

    def to_arrays(self) -> dict[str, Any]:
        """The same with NumPy arrays."""

        def as_array(numbers: Any) -> Any:
            return numbers.numpy() if isinstance(numbers, Tensor) else numbers

        return with_tensors_as(as_array, self.content())

    def _repr_html_(self) -> str:
        """What a notebook draws for a cell that ends in an answer."""
        drawn = self.content() | self.numbers() if self.IS_BY_ITEM else self.content()
        return draw_numbers(type(self).__name__, with_tensors_as(lambda numbers: numbers, drawn), self.PER_HEAD)

    def show(self) -> None:
        """Draw tables of the numbers, coloured by value, in the cell that is running.

        Raises ``RuntimeError`` outside a notebook.
        """
        display(self._repr_html_(), repr(self))


def with_tensors_as(convert: Callable[[Any], Any], value: Any) -> Any:
    """Nested data with every tensor and NumPy number converted, and answers in it as dictionaries."""
    if isinstance(value, Tensor | np.generic):
        return convert(value)
    if isinstance(value, Answer):
        return with_tensors_as(convert, value.content())
    if isinstance(value, Mapping):
        return {name: with_tensors_as(convert, each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [with_tensors_as(convert, each) for each in value]
    return value
