"""What all answers of analyses have in common: numbers as plain data, and a drawing of them."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, ClassVar

from torch import Tensor

from ..drawing.heat_map import draw_numbers
from ..drawing.html import display


class Answer:
    """A base of frozen dataclasses with tensors, float32 on the CPU."""

    PER_HEAD: ClassVar[tuple[str, ...]] = ()  # the names of tensors ``(n_layer, n_head)``

    def content(self) -> dict[str, Any]:
        """The numbers by the names that ``/v1/lens`` gives them, with tensors in place of lists."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, Any]:
        """The same with nested lists of numbers, ready for JSON."""
        return with_tensors_as(Tensor.tolist, self.content())

    def to_arrays(self) -> dict[str, Any]:
        """The same with NumPy arrays."""
        return with_tensors_as(Tensor.numpy, self.content())

    def _repr_html_(self) -> str:
        """What a notebook draws for a cell that ends in an answer."""
        return draw_numbers(type(self).__name__, with_tensors_as(lambda tensor: tensor, self.content()), self.PER_HEAD)

    def show(self) -> None:
        """Draw tables of the numbers, coloured by value, in the cell that is running.

        Raises ``RuntimeError`` outside a notebook.
        """
        display(self._repr_html_(), repr(self))


def with_tensors_as(convert: Callable[[Tensor], Any], value: Any) -> Any:
    """Nested data with every tensor converted, and answers in it as dictionaries."""
    if isinstance(value, Tensor):
        return convert(value)
    if isinstance(value, Answer):
        return with_tensors_as(convert, value.content())
    if isinstance(value, Mapping):
        return {name: with_tensors_as(convert, each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [with_tensors_as(convert, each) for each in value]
    return value
