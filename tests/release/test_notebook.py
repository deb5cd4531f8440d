"""A notebook, executed with nbclient in a separate environment, draws what its cells end in."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from helpers.models import tiny_model
from helpers.third_party.packages import with_packages

CELLS = [
    "import model; loaded = model.load('tiny', device='cpu')\ntrace = loaded.trace('To be')\ntrace",
    "trace.show()\nprint('shown')",
    "for text in ('or', 'not'): loaded.trace(text).show(exact=True)",
    "loaded.generate('To be', max_new_tokens=5, seed=1, record=True)",
    "loaded.trace('To be', heads=[0])",
    "model.view(trace.attention, list('To be'))",
    "loaded.knockout('To be').show()",
]
EXECUTE = """
import json, sys
import nbformat
from nbclient import NotebookClient
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in json.load(sys.stdin)])
NotebookClient(notebook, timeout=240).execute()
print(json.dumps([cell.outputs for cell in notebook.cells]))
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return with_packages(tmp_path_factory.mktemp("notebook"), "nbclient", "ipykernel")


def test_cells_draw_traces(environment: dict[str, str], tmp_path: Path) -> None:
    tiny_model().save(tmp_path / "tiny")
    env = {**environment, "JUPYTER_PLATFORM_DIRS": "1", "IPYTHONDIR": str(tmp_path / "ipython")}
    command = [sys.executable, "-c", EXECUTE]
    ran = subprocess.run(command, input=json.dumps(CELLS), cwd=tmp_path, env=env, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-3000:]
    ended, shown, several, written, partial, viewed, asked = json.loads(ran.stdout.splitlines()[-1])
    assert [output["output_type"] for output in ended] == ["execute_result"]
    assert {"display_data", "stream"} == {output["output_type"] for output in shown}
    assert [output["output_type"] for output in several] == ["display_data"] * 2
    for output in [*ended, shown[0], *several, *written, *viewed]:
        data: dict[str, Any] = output["data"]
        assert data["text/html"].startswith('<iframe sandbox="allow-scripts allow-downloads"')
        assert data["text/plain"].count("\n") == 2
    assert "<table" in asked[0]["data"]["text/html"] and "Knockout(" in asked[0]["data"]["text/plain"]
    assert "Text written by tiny" in written[0]["data"]["text/plain"]
    assert (
        set(partial[0]["data"]) == {"text/plain"} and "needs all layers and heads" in partial[0]["data"]["text/plain"]
    )
