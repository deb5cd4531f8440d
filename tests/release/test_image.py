"""The steps of deploy/Dockerfile, carried out without Docker: its files, variables, command and health check."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.files import ROOT, copied, dockerfile
from helpers.serve_once import free_port, wait_until_healthy

pytestmark = pytest.mark.slow


def test_the_image_serves(tmp_path: Path) -> None:
    app = tmp_path / "app"
    app.mkdir()
    for source in copied():
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, app / source)
        else:
            shutil.copy(ROOT / source, app)
    instructions, port = dict(dockerfile()), str(free_port())
    variables = dict(each.split("=", 1) for each in shlex.split(instructions["ENV"])) | {"HEADSCOPE_PORT": port}
    variables |= {"HEADSCOPE_CACHE": str(tmp_path / "cache"), "HF_HOME": str(tmp_path / "cache/hub")}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("HEADSCOPE", "HF_"))}
    command = [sys.executable, *json.loads(instructions["CMD"])[1:]]
    check = instructions["HEALTHCHECK"].split("CMD ", 1)[1].replace("7860", port)
    check_command = [sys.executable, *json.loads(check)[1:]]
    before = set(app.rglob("*"))
    with subprocess.Popen(command, cwd=app, env=inherited | variables) as process:
        try:
            assert wait_until_healthy(f"http://127.0.0.1:{port}", process)["status"] == "ok"
            assert subprocess.run(check_command).returncode == 0
        finally:
            process.terminate()
    assert subprocess.run(check_command, stderr=subprocess.DEVNULL).returncode != 0
    assert set(app.rglob("*")) == before  # nothing is written into the code's folder
