"""The definitions that notebooks copy: whoever evaluates an annotation of theirs finds what it names."""

import ast
import io
import os
from email.message import Message
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError

import pytest

from web.learn.notebooks import cells, notebook
from web.learn.notebooks.copied_source import annotated_in, bound_by, definitions
from web.learn.notebooks.notebook import (
    NOTEBOOKS,
    RECORDED_BIGRAM,
    Notebook,
    exercises,
    files_to_fetch,
    published_file,
    published_hashes,
)
from web.settings import CHECKPOINTS

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


@pytest.mark.parametrize("made", [*NOTEBOOKS.values(), RECORDED_BIGRAM], ids=lambda made: made.run.__name__)
def test_types_of_other_packages_are_imported(made: Notebook) -> None:
    defined = ast.parse(definitions(made.run, made.tasks))
    bound = {each for node in defined.body for each in bound_by(node)}
    code = [cell.source for cell in exercises(made) if cell.kind == "code"]
    for tree in (defined, *map(ast.parse, code)):
        assert TYPES_OF_OTHERS & set(annotated_in(tree)) <= bound
    assert not bound & {solution.__name__ for solution, _ in made.tasks}


def test_the_hashes_are_those_of_the_repository_s_models() -> None:
    weights = {path.relative_to(CHECKPOINTS).as_posix() for path in CHECKPOINTS.glob("**/*.safetensors")}
    assert weights < set(published_hashes())
    assert all(published_file(path) == CHECKPOINTS / path for path in published_hashes())


def test_a_model_that_an_operator_put_there_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert published_hashes()
    monkeypatch.setattr(notebook, "CHECKPOINTS", tmp_path)
    (tmp_path / "stories-bpe").mkdir()
    (tmp_path / "stories-bpe" / "config.json").write_text("{}")
    assert published_file("stories-bpe/config.json") is None


def test_a_model_of_the_same_name_elsewhere_is_not_fetched(tmp_path: Path) -> None:
    given: dict[str, object] = {"folder": "checkpoints/stories-bpe", "file": "model.safetensors"}

    def fetched(folder: Path) -> dict[str, str]:
        served: Any = SimpleNamespace(served=SimpleNamespace(sources={"stories-bpe": folder}))
        return files_to_fetch(served, given)

    assert list(fetched(CHECKPOINTS / "stories-bpe")) == ["config.json", "tokenizer.json", "model.safetensors"]
    assert not fetched(tmp_path / "stories-bpe")


def test_a_notebook_says_what_to_do_about_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = []

    def refuse(request: Any) -> Any:
        sent.append(request.get_header("Authorization"))
        raise HTTPError(request.full_url, 401, "", Message(), io.BytesIO())

    monkeypatch.setattr(cells, "urlopen", refuse)
    monkeypatch.delenv("HEADSCOPE_KEY", raising=False)
    fetch = cells.fetch_model
    with pytest.raises(PermissionError, match="HEADSCOPE_KEY"):
        fetch("http://server", str(tmp_path), {"config.json": ""})
    monkeypatch.setitem(os.environ, "HEADSCOPE_KEY", "secret")
    with pytest.raises(PermissionError):
        fetch("http://server", str(tmp_path), {"config.json": ""})
    assert sent == [None, "Bearer secret"]
