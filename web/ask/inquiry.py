"""Inquiries of Ask: questions about a model and a text, whose fields have been checked."""

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import orjson
from torch import Tensor

from model import LoadedModel

Content = dict[str, Any]  # JSON, with NumPy arrays in place of lists of numbers


@dataclass(frozen=True, eq=False)
class Inquiry:
    """A question whose fields have been checked: its models, and its text unless it is about a model alone."""

    models: dict[str, LoadedModel]  # keyed by the field that names them
    ids: tuple[int, ...]
    head_mask: Tensor | None  # (n_layer, n_head)
    values: dict[str, Any]  # of all other fields, as JSON

    @property
    def loaded(self) -> LoadedModel:
        return self.models["model"]

    def key(self, question: str) -> Hashable:
        """A key under which answers are cached: inquiries with the same key have the same answer."""
        values = hashlib.sha256(orjson.dumps(self.values, option=orjson.OPT_SORT_KEYS)).digest()
        models = [(field, identity(each), each.name) for field, each in sorted(self.models.items())]
        return question, *models, self.ids, mask_bytes(self.head_mask), values


def identity(loaded: LoadedModel) -> Hashable:
    """A key for the weights of a model as they are served: models with the same key give the same answers."""
    return loaded.sha256 or id(loaded), str(loaded.dtype), str(loaded.device)


def mask_bytes(head_mask: Tensor | None) -> bytes | None:
    return None if head_mask is None else head_mask.cpu().numpy().tobytes()


def to_json(answer: Content) -> bytes:
    return orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)
