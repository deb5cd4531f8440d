"""The tasks and the words of the notebooks: solutions pass their checks, and nothing else does."""

import inspect
import json
import shutil
import subprocess
from typing import Any

import pytest
import torch

from helpers.files import ROOT
from model import load
from model.ladder.terms import seeded
from web.learn.block import make_block
from web.learn.notebooks import cells
from web.learn.notebooks.copied_source import Task
from web.learn.notebooks.notebook import NOTEBOOKS
from web.learn.notebooks.prose import CONTENT, as_markdown, content_of, main_path
from web.learn.tokens_and_windows import ALPHABET

TASKS = [task for notebook in NOTEBOOKS.values() for task in notebook.tasks]
CONTENTS = """
const files = JSON.parse(process.argv[1]);
const contents = await Promise.all(files.map(async (file) => (await import(file)).content));
process.stdout.write(JSON.stringify(contents));
"""


@pytest.fixture(scope="module")
def inputs() -> dict[str, Any]:
    folder = ROOT / "checkpoints" / "two-layer-steps"
    generator = torch.Generator().manual_seed(1)
    ids = load(folder, device="cpu").parse_prompt("the cat sat on the")
    return {
        "alphabet": ALPHABET,
        "x": torch.rand(4, 3, generator=generator),
        "W_query": torch.rand(3, 2, generator=generator),
        "W_key": torch.rand(3, 2, generator=generator),
        "tensors": seeded(1, make_block).state_dict(),
        "gpt": cells.open_gpt2(str(folder), "model.safetensors"),
        "ids": ids,
        "phrase": ids,
        "logits": torch.randn(20, generator=generator),
    }


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task[0].__name__)
def test_a_check_passes_with_the_solution_alone(
    task: Task, inputs: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    solution, check = task
    given = {name: inputs[name] for name in inspect.signature(check).parameters}
    with torch.no_grad():
        check(**given)
    monkeypatch.setitem(check.__globals__, solution.__name__, lambda *_: None)
    with pytest.raises(AssertionError):
        check(**given)


def test_each_notebook_has_three_tasks() -> None:
    assert [(notebook.rung, len(notebook.tasks)) for notebook in NOTEBOOKS.values()] == [(i + 1, 3) for i in range(11)]


@pytest.mark.skipif(shutil.which("node") is None, reason="Node runs the page's modules")
def test_the_words_are_those_of_the_page() -> None:
    files = sorted(str(path) for path in CONTENT.glob("[0-9]*.mjs"))
    command = ["node", "--input-type=module", "-e", CONTENTS, json.dumps(files)]
    read = subprocess.run(command, capture_output=True, check=True, encoding="utf-8")
    assert json.loads(read.stdout) == [content_of(i + 1) for i in range(len(files))]
    for i in range(len(files)):
        titles = [step["title"] for step in content_of(i + 1)["steps"]]
        assert [line[4:] for line in main_path(i + 1).splitlines() if line.startswith("### ")] == titles


def test_marks_become_markdown() -> None:
    assert as_markdown("A *head* of [logits], [in words](softmax), `[BOS]` here.") == (
        "A *head* of logits, in words, `[BOS]` here."
    )
    assert as_markdown("Never 0{epsilon}") == "Never 0."
    assert as_markdown("Look. {drawn}") == "Look."
