"""The definitions that notebooks copy: whoever evaluates an annotation of theirs finds what it names."""

import ast

import pytest

from web.learn.notebook import NOTEBOOKS, annotated_in, bound_by, definitions

TYPES_OF_OTHERS = {
    "Tensor",
    "Sequence",
    "Callable",
    "Iterable",
    "Iterator",
    "Mapping",
    "Any",
    "NamedTuple",
    "Generator",
}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_types_of_other_packages_are_imported(name: str) -> None:
    tree = ast.parse(definitions(NOTEBOOKS[name].run))
    bound = {each for node in tree.body for each in bound_by(node)}
    assert TYPES_OF_OTHERS & set(annotated_in(tree)) <= bound
