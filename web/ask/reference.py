"""The fields and the answer about what replaces a head that is removed, shared by several questions."""

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from torch import Tensor

from model.lens.interventions.reference import (
    REFERENCE_NAME,
    Method,
    check_texts,
    contexts_of,
    shipped_passages,
)

from ..serving.inputs import parse_ids
from .inquiry import Answer, Inquiry
from .question import Field, Subject

METHOD = Field(
    "method",
    "What a removed head's context vectors are replaced with: zeros (`zero`), their mean over the reference set "
    "(`mean`), their mean over this text, the later tokens included (`text_mean`), or those at the same positions of "
    "another text (`resample`).",
    Method,
    default="zero",
)


@dataclass(frozen=True)
class TextsField(Field):
    """Texts that each fit into the context, read as lists of token ids."""

    kind: Any = list[str]

    def parse(self, given: Any, subject: Subject) -> list[list[int]] | None:
        texts = given.get(self.name)
        return (
            None
            if texts is None
            else [parse_ids(subject.limits, subject.loaded, text, None, (self.name, self.name)) for text in texts]
        )


REFERENCE = TextsField(
    "reference",
    f"For `mean`, the texts of a reference set instead of the shipped one ({REFERENCE_NAME}). For `resample`, a single "
    "text, of at least as many tokens.",
    default=None,
)


class ReferenceSet(BaseModel):
    """The texts from which the replacements are taken."""

    name: str
    texts: int
    tokens: int


def check_reference(inquiry: Inquiry) -> None:
    """Raise ``InputError`` unless the reference fits the method and the text."""
    check_texts(inquiry.values["method"], inquiry.values["reference"], len(inquiry.ids))


def reference_of(inquiry: Inquiry) -> tuple[Tensor | None, Answer | None]:
    """The replacement for the method of an inquiry, as ``model.lens`` takes it, and what the answer says about it."""
    method, given = inquiry.values["method"], inquiry.values["reference"]
    if method == "resample":
        contexts = contexts_of(inquiry.text_of(given[0]), len(inquiry.ids))
        return contexts, {"name": "the given text", "texts": 1, "tokens": len(given[0])}
    if method != "mean":
        return None, None
    texts = shipped_passages(inquiry.loaded) if given is None else given
    name = REFERENCE_NAME if given is None else "the given texts"
    said: Answer = {"name": name, "texts": len(texts), "tokens": sum(map(len, texts))}
    return inquiry.ask.mean_contexts(inquiry.loaded, texts, inquiry.head_mask), said
