"""The notebooks of Learn: run without Headscope, they print the page's numbers."""

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from helpers.files import ROOT
from helpers.server import Server, start
from web.learn.notebooks.notebook import NOTEBOOKS

SENTENCE = "What is in a name?"
TEXT = "the cat sat on the mat. the dog sat on the cat. " * 20
DRAW = {"temperature": 1.3, "top_k": 40, "top_p": 0.9, "seed": 7, "draws": 1000}
SETTINGS: dict[str, dict[str, Any]] = {
    "windows": {"context_length": 3, "stride": 2},
    "untrained-bigram": {"training_text": TEXT, "steps": 50, "seed": 3},
    "averages": {"lecture": False, "scores": [[0, 0, 0, 0, 0, 0]] * 4 + [[0, 2, 0, -1, 0, 0], [1, 0, 0, 0, 0, 3]]},
    "self-attention": {"factor": 2.0, "swapped": True},
    "trainable-weights": {"kind": "reader_linear"},
    "causal-masking": {"factor": 3.0, "dropout": 0.3, "seed": 5, "flipped": [[1, 4], [3, 0], [9, 0]]},
    "many-heads": {"d_out": 16},
    "block": {"scale": 5.0},
    "whole-model": {"layer": 1, "head": 2, "query": 3} | DRAW,
    "induction": {"step": 831, "muted": [0, 2]},
}
# The tables of each rung that a notebook prints, and the page's numbers by their names in the server's answer.
TABLES: dict[str, dict[str, str]] = {
    "windows": {"Token embeddings": "token", "Position embeddings": "position", "Their sum": "x"},
    "averages": {
        "Weights": "weights",
        "By a loop": "by_loop",
        "By a matrix product": "by_matrix",
        "Weights of the softmax": "softmax_weights",
        "By a softmax": "by_softmax",
    },
    "self-attention": {
        "Attention scores": "scores",
        "Plain normalisation": "sum_normalised",
        "Attention weights": "weights",
        "Context vectors": "context",
        "Softmax by its definition": "naive",
        "Stable softmax": "stable",
    },
    "trainable-weights": {
        "Queries": "query",
        "Keys": "key",
        "Values": "value",
        "Attention scores": "scores",
        "Attention weights": "weights",
        "Context vectors": "context",
    },
    "causal-masking": {
        "Attention scores": "scores",
        "Masked scores": "masked",
        "Attention weights": "weights",
        "Weights without the mask": "all_weights",
        "1b. The hidden ones set to 0": "cut",
        "1b, divided by the sum of the rest": "renormalised",
        "After dropout": "dropped",
        "Context vectors": "batch.0",
    },
    "many-heads": {
        "Attention weights, head 1": "random.1.weights",
        "Values, head 0": "values.0",
        "Masked scores of head 1, seed 123": "splits_scores.1",
        "Context vectors": "stacked",
        "Weight splits": "merged",
        "Output": "output",
        "Weights of head 1, seed 123": "splits_weights.1",
        "Before the output projection": "context",
        "After the output projection": "projected",
    },
    "block": {
        "Layer norm": "normed",
        "Attention weights, head 0": "weights.0",
        "What attention adds": "attended",
        "x + attention": "resid_mid",
        "Layer norm again": "mlp_input",
        "Hidden numbers": "hidden",
        "After GELU": "activated",
        "What the MLP adds": "mlp_output",
        "... + MLP": "after",
    },
    "whole-model": {
        "Residual stream": "vectors.x",
        "Context vector of the head": "of_head.context",
        "Residual stream after the layer": "vectors.after",
        "surprise at the token that follows": "end.surprise",
    },
}
# Runs the code cells of each notebook in a fresh namespace, where Headscope and its other packages are missing. A task
# fails as it stands, and passes with its solution.
RUN = """
import contextlib, io, json, sys
for name in ("model", "web", "regex", "tiktoken", "gradio"):
    sys.modules[name] = None
printed = {}
for name, notebook in json.load(sys.stdin).items():
    out, names = io.StringIO(), {"__name__": name}
    sys.modules[name] = type(sys)(name)
    with contextlib.redirect_stdout(out):
        for cell in notebook["cells"]:
            if cell["cell_type"] != "code":
                continue
            if "solved" in cell:
                try:
                    exec(compile(cell["source"], name, "exec"), names)
                except AssertionError:
                    pass
                else:
                    raise ValueError(f"{name}: {cell['id']} passes unsolved")
            exec(compile(cell.get("solved", cell["source"]), name, "exec"), names)
    printed[name] = out.getvalue()
print(json.dumps(printed))
"""
EXECUTE = """
import json, sys
import nbformat
from nbclient import NotebookClient
printed = {}
notebooks, executed = json.load(sys.stdin)
for name, notebook in notebooks.items():
    notebook = nbformat.from_dict(notebook)
    for cell in notebook.cells:
        cell.source = cell.pop("solved", cell.source)
    nbformat.validate(notebook)
    if name not in executed:
        continue
    NotebookClient(notebook, timeout=240).execute()
    printed[name] = "".join(out.get("text", "") for cell in notebook.cells for out in cell.get("outputs", ()))
print(json.dumps(printed))
"""


@pytest.fixture(scope="module")
def notebook_server() -> Iterator[Server]:
    server = start(ROOT / "checkpoints" / "two-layer-steps")
    yield server
    server.close()


def post(server: Server, path: str, name: str) -> Any:
    body = {"sentence": SENTENCE} | SETTINGS.get(name, {})
    if path == "whole-model":
        body = {field: value for field, value in body.items() if field not in DRAW}
    response = httpx.post(f"{server.url}/learn/{path}", json=body, timeout=60)
    assert response.status_code == 200, response.text
    return response.json()


@pytest.fixture(scope="module")
def notebooks(notebook_server: Server) -> dict[str, Any]:
    return {name: post(notebook_server, f"notebooks/{name}.ipynb", name) for name in NOTEBOOKS}


@pytest.fixture(scope="module")
def printed(notebooks: dict[str, Any]) -> dict[str, str]:
    return run(notebooks)


def run(notebooks: dict[str, Any], folder: Path = ROOT) -> dict[str, str]:
    """What each of the notebooks prints in ``folder``."""
    command = [sys.executable, "-I", "-c", RUN]  # isolated: nothing of the repository can be imported
    given = json.dumps({name: with_solutions(notebook) for name, notebook in notebooks.items()})
    ran = subprocess.run(command, input=given, cwd=folder, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-3000:]
    found: dict[str, str] = json.loads(ran.stdout.splitlines()[-1])
    return found


def with_solutions(notebook: Any) -> Any:
    """The notebook; each task also has what its cell holds once it is solved."""
    sources = {cell["id"]: cell["source"] for cell in notebook["cells"]}

    def solved(cell: Any) -> Any:
        kind, _, number = cell["id"].partition("-")
        if kind != "task":
            return cell
        _, check = cell["source"].split("    ...\n")
        return cell | {"solved": f"{sources[f'solution-{number}']}\n{check}"}

    return notebook | {"cells": [solved(cell) for cell in notebook["cells"]]}


def inputs_of(notebook: Any) -> str:
    (found,) = [cell["source"] for cell in notebook["cells"] if cell["id"] == "inputs"]
    return str(found)


def rows_below(text: str, name: str) -> list[list[str]]:
    """The numbers printed below a name."""
    lines = text.splitlines()
    start = lines.index(name) + 1
    found = []
    for line in lines[start:]:
        numbers = re.search(r"(?:(?:^| ) *-?(?:\d+\.\d{4}|inf|nan))+$", line)
        if not numbers:
            break
        found.append(numbers[0].split())
    return found


def names_below(text: str, name: str) -> list[str]:
    """What the rows printed below a name begin with."""
    lines = text.splitlines()
    start = lines.index(name) + 1
    n = len(rows_below(text, name))
    return [re.split(r" {2,}-?(?:\d+\.\d{4}|inf|nan)", f" {line}")[0].strip() for line in lines[start : start + n]]


def at(data: Any, path: str) -> Any:
    for step in path.split("."):
        data = data[int(step)] if step.isdecimal() else data[step]
    return data


def to_four_digits(values: Any) -> Iterator[list[str]]:
    rows = values if isinstance(values, list) else [values]
    for row in rows if isinstance(rows[0], list) else [rows]:
        yield ["-inf" if value is None else f"{value:.4f}" for value in row]


def assert_same(found: list[list[str]], expected: Any) -> None:
    """Equal to four digits; a number between two of them may be rounded to either."""
    rows = list(to_four_digits(expected))
    assert [len(row) for row in found] == [len(row) for row in rows]
    for mine, theirs in zip(found, rows, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            assert a == b or abs(float(a) - float(b)) < 1.5e-4, (a, b)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.slow
def test_a_notebook_prints_the_numbers_of_the_page(name: str, printed: dict[str, str], notebook_server: Server) -> None:
    shown = post(notebook_server, name, name)
    for title, path in TABLES[name].items():
        assert_same(rows_below(printed[name], title), at(shown, path))


@pytest.mark.slow
def test_tokens_are_those_of_the_page(printed: dict[str, str], notebook_server: Server) -> None:
    shown = post(notebook_server, "tokens", "tokens")
    for title, name in (("words", "words"), ("characters", "characters"), ("byte pairs", "pairs")):
        assert f"{title} {[token['id'] for token in shown[name]['tokens']]}\n" in printed["tokens"]


@pytest.mark.slow
def test_a_bigram_model_trains_as_on_the_page(printed: dict[str, str], notebook_server: Server) -> None:
    body = SETTINGS["untrained-bigram"] | {"sentence": SENTENCE}
    lines = httpx.post(f"{notebook_server.url}/learn/bigram", json=body, timeout=60).text.splitlines()
    before, after = json.loads(lines[0]), json.loads(lines[-1])
    text = printed["untrained-bigram"]
    assert_same(rows_below(text, "the floor: counted pairs"), before["floor"])
    assert_same(rows_below(text, "trained, on the training part"), after["loss"])
    assert_same(rows_below(text, "trained, on the held-out tenth"), after["held_out"])
    rated = [each for each in after["sentence"] if each["probability"]]
    title = "each character of the sentence: probability, surprise"
    assert_same(rows_below(text, title), [[each["probability"], -math.log(each["probability"])] for each in rated])
    assert names_below(text, title) == [each["text"].strip() for each in rated]
    assert after["wrote"] in text


@pytest.mark.slow
def test_without_a_text_a_notebook_has_the_table_that_the_page_opens_with(notebook_server: Server) -> None:
    body = {"sentence": SENTENCE}
    shown = httpx.post(f"{notebook_server.url}/learn/untrained-bigram", json=body, timeout=60).json()["example"]
    before, training, after = shown
    url = f"{notebook_server.url}/learn/notebooks/untrained-bigram.ipynb"
    text = run({"recorded": httpx.post(url, json=body, timeout=60).json()})["recorded"]
    losses = [before["uniform"], before["floor"], before["loss"], after["loss"], after["held_out"]]
    assert_same(rows_below(text, "The losses, as recorded"), [[loss] for loss in losses])
    assert_same(rows_below(text, "the probability of each of them after each"), training["snapshots"][-1]["follows"])
    rated = [each["probability"] for each in after["sentence"] if each["probability"]]
    title = "each character of the sentence: probability, surprise"
    assert_same(rows_below(text, title), [[p, -math.log(p)] for p in rated])


@pytest.mark.slow
def test_tasks_can_be_solved_for_two_words(notebook_server: Server) -> None:
    body = {"sentence": "Hi there"}
    url = f"{notebook_server.url}/learn/notebooks"
    short = {name: httpx.post(f"{url}/{name}.ipynb", json=body, timeout=60).json() for name in NOTEBOOKS}
    assert all(text.count("Right.\n") == 3 for text in run(short).values())


@pytest.mark.slow
def test_a_model_predicts_as_on_the_page(printed: dict[str, str], notebook_server: Server) -> None:
    shown = post(notebook_server, "whole-model", "whole-model")
    assert f"ids {shown['ids']}\n" in printed["whole-model"]
    for token in shown["end"]["next"][:10]:
        assert re.search(rf"logit +{token['logit']:.4f} probability {token['p']:.4f}", printed["whole-model"])
    drawn = post(notebook_server, "draw", "whole-model")
    for token in drawn["tokens"]:
        line = rf"drawn with {token['drawn_with']:.4f}, {token['n']} of 1000 draws\n"
        assert re.search(line, printed["whole-model"]), token
    assert f"drawn first: {drawn['drawn']['text']!r}\n" in printed["whole-model"]
    found = rows_below(printed["whole-model"], "Attention weights of L1 H2")
    weights = iter(shown["weights"])
    side = range(len(found))
    assert_same(found, [[next(weights) if key <= query else 0.0 for key in side] for query in side])


@pytest.mark.parametrize("name", sorted(set(TABLES) - {"windows", "whole-model"}))
@pytest.mark.slow
def test_rows_are_named_after_the_visitor_s_words(
    name: str, notebooks: dict[str, Any], printed: dict[str, str], notebook_server: Server
) -> None:
    shown = post(notebook_server, name, name)
    assert f"sentence = {SENTENCE!r}\nwords = {shown['words']!r}\n" in inputs_of(notebooks[name])
    assert printed[name].startswith(f"{SENTENCE}\n")
    for title, path in TABLES[name].items():
        if len(at(shown, path)) == len(shown["words"]):
            assert names_below(printed[name], title) == shown["words"], title


@pytest.mark.slow
def test_a_block_s_notebook_quotes_the_recorded_losses(printed: dict[str, str], notebook_server: Server) -> None:
    models = post(notebook_server, "block", "block")["ladder"]["models"]
    title = "The loss ladder, as recorded"
    assert names_below(printed["block"], title) == [each["name"] for each in models]
    assert_same(rows_below(printed["block"], title), [[each["held_out_loss"]] for each in models])


@pytest.mark.slow
def test_induction_forms_and_needs_another_head(printed: dict[str, str], notebook_server: Server) -> None:
    shown = post(notebook_server, "induction", "induction")
    assert names_below(printed["induction"], "How it formed") == [str(step) for step in shown["steps"]]
    columns = ("induction", "previous_token", "first_loss", "second_loss")
    assert_same(
        rows_below(printed["induction"], "How it formed"), [[row[name] for name in columns] for row in shown["curve"]]
    )
    all_heads, muted = printed["induction"].split("without [")
    for text, numbers in ((all_heads, shown["read"]), (muted, shown["without"])):
        assert_same(rows_below(text, "weight of L1 H2 on what followed last time"), numbers["induction"])
        assert_same(rows_below(text, "loss of the repetition"), numbers["second_loss"])
        assert_same(rows_below(text, "loss of each token but the first"), [[loss] for loss in numbers["losses"]])


@pytest.mark.slow
def test_without_a_muted_head_nothing_is_printed_twice(notebook_server: Server) -> None:
    body = {"sentence": SENTENCE, "step": 831}
    notebook = httpx.post(f"{notebook_server.url}/learn/notebooks/induction.ipynb", json=body, timeout=60).json()
    text = run({"induction": notebook})["induction"]
    assert text.count("loss of the repetition") == 1


@pytest.mark.slow
def test_notebooks_fetch_the_model_that_they_lack(
    notebooks: dict[str, Any], printed: dict[str, str], tmp_path: Path
) -> None:
    of_models = {name: notebooks[name] for name in ("whole-model", "induction")}
    assert run(of_models, tmp_path) == {name: printed[name] for name in of_models}
    (tmp_path / "checkpoints" / "two-layer-steps" / "config.json").write_text("{}")
    with pytest.raises(AssertionError, match="config.json has the SHA-256"):
        run(of_models, tmp_path)


def test_only_files_of_the_repository_s_models_are_sent(notebook_server: Server) -> None:
    url = f"{notebook_server.url}/learn/models"
    sent = httpx.get(f"{url}/two-layer-steps/config.json")
    assert sent.content == (ROOT / "checkpoints" / "two-layer-steps" / "config.json").read_bytes()
    for path in ("own/config.json", "two-layer-steps/training.json", "two-layer-steps/%2e%2e/SHA256SUMS", "SHA256SUMS"):
        assert httpx.get(f"{url}/{path}").status_code == 404, path


def model_cell(server: Server, headers: dict[str, str]) -> str:
    """The cell with which a notebook fetches its model."""
    url = f"{server.url}/learn/notebooks/whole-model.ipynb"
    cells = httpx.post(url, json={"sentence": SENTENCE}, headers=headers, timeout=60).json()["cells"]
    (source,) = [cell["source"] for cell in cells if cell["id"] == "model"]
    return str(source)


def test_a_model_is_fetched_from_where_the_page_is_seen(notebook_server: Server) -> None:
    forwarded = {"X-Forwarded-Host": "heads.example"}
    path = "learn/models/two-layer-steps"
    assert f"server = '{notebook_server.url}/{path}'" in model_cell(notebook_server, forwarded)  # no proxy is trusted
    below = start(ROOT / "checkpoints" / "two-layer-steps", root_path="/heads", trusted_proxies=1)
    try:
        assert f"server = 'https://heads.example/heads/{path}'" in model_cell(
            below, forwarded | {"X-Forwarded-Proto": "https"}
        )
    finally:
        below.close()


def test_refused_inputs_have_no_notebook(notebook_server: Server) -> None:
    url = f"{notebook_server.url}/learn/notebooks"
    assert httpx.post(f"{url}/11.ipynb", json={}).status_code == 404
    assert httpx.post(f"{url}/block.ipynb", json={"sentence": " "}).json()["detail"].startswith("The sentence is empty")
    assert httpx.post(f"{url}/block.ipynb", json={"dropout": 1}).json()["detail"] == "dropout: there is no such field."


@pytest.mark.slow
def test_jupyter_accepts_all_of_them_and_executes_some(
    notebooks: dict[str, Any], printed: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "packages"
    command = [sys.executable, "-m", "pip", "install", "-q", "--target", str(folder), "nbclient", "ipykernel"]
    installed = subprocess.run(command, capture_output=True, text=True)
    if installed.returncode:
        pytest.skip(f"nbclient cannot be installed here: {installed.stderr.strip()[-200:]}")
    env = {"JUPYTER_PLATFORM_DIRS": "1", "IPYTHONDIR": str(tmp_path / "ipython"), "PYTHONPATH": str(folder)}
    (tmp_path / "checkpoints").symlink_to(ROOT / "checkpoints")
    given = {name: with_solutions(notebook) for name, notebook in notebooks.items()}
    given["unsolved"] = notebooks["self-attention"]
    executed = ["self-attention", "unsolved", "tokens"]  # the others run in the same way
    ran = subprocess.run(
        [sys.executable, "-c", EXECUTE], input=json.dumps([given, executed]), cwd=tmp_path, env=os.environ | env,
        capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    found = json.loads(ran.stdout.splitlines()[-1])
    unsolved = found.pop("unsolved")
    assert found == {name: printed[name] for name in found} and found.keys() == {"self-attention", "tokens"}
    assert printed["self-attention"] == unsolved + 3 * "Right.\n"
