"""The JSON of answers, as pydantic models: made from the dataclasses that ``model.lens`` declares."""

from collections.abc import Collection
from dataclasses import is_dataclass
from functools import cache, reduce
from operator import or_
from types import UnionType
from typing import Any, Union, get_args, get_origin, is_typeddict

from pydantic import BaseModel, create_model
from pydantic import Field as Described

from model.lens import answer
from model.lens.answer import Answer, IsToken, SentAs, Shape, first_paragraph, sent_fields, sent_type
from model.tokenizer import Token


class NamedToken(BaseModel):
    id: int
    text: str


class Precision(BaseModel):
    computed: str
    served: str
    largest_difference: float | None = Described(
        None,
        description="If the model is served in another precision: the largest change this makes to the "
        "log-probability of any token of the text, in nats.",
    )


class ModelAnswer(BaseModel):
    model: str
    precision: Precision


class TextAnswer(ModelAnswer):
    tokens: list[NamedToken]


@cache
def model_of(declared: Any) -> type[BaseModel]:
    """The JSON of a dataclass or a ``TypedDict`` inside of an answer."""
    if declared in (Token, answer.NamedToken):
        return NamedToken
    return create_model(declared.__name__, __doc__=description_of(declared), **fields_of(declared))


def answer_model(
    name: str, declared: type[Answer], is_about_text: bool, on_request: Collection[str]
) -> type[BaseModel]:
    """The JSON of an answer; it lacks the fields ``on_request`` unless they are asked for."""
    fields = fields_of(declared)
    for each in on_request:
        kind, described = fields[each]
        fields[each] = kind | None, Described(None, description=described.description)
    base = TextAnswer if is_about_text else ModelAnswer
    model: type[BaseModel] = create_model(name, __base__=base, __doc__=description_of(declared), **fields)
    return model


def fields_of(declared: Any) -> dict[str, Any]:
    return {
        name: (json_type(kind), Described(description=help) if help else ...)
        for name, (kind, help) in sent_fields(declared).items()
    }


def description_of(declared: Any) -> str | None:
    """The first paragraph of a class's own docstring; a dataclass without one has its signature."""
    documented = sent_type(declared)
    has_own = vars(documented).get("__doc__") and not documented.__doc__.startswith(f"{documented.__name__}(")
    return first_paragraph(documented) if has_own else None


def json_type(kind: Any) -> Any:
    """The type that JSON has for an annotation of ``model.lens``."""
    words = {type(word): word for word in getattr(kind, "__metadata__", ())}
    if SentAs in words:
        return json_type(words[SentAs].kind)
    if IsToken in words:
        return list[NamedToken] if get_origin(kind.__origin__) is list else NamedToken
    if Shape in words:
        number: Any = int if words[Shape].whole else float
        return reduce(lambda inner, _axis: list[inner], words[Shape].axes, number)  # type: ignore[valid-type]
    if words:
        return json_type(kind.__origin__)
    if get_origin(kind) in (Union, UnionType):
        return reduce(or_, map(json_type, get_args(kind)))
    if get_origin(kind) in (list, tuple, dict):
        return get_origin(kind)[tuple(each if each is ... else json_type(each) for each in get_args(kind))]
    return model_of(kind) if is_dataclass(kind) or is_typeddict(kind) or kind is Token else kind
