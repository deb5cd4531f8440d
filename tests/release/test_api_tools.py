"""Tools that read /v1's OpenAPI document: a validator, a generator of clients, and generated requests."""

import json
import os
import subprocess
from pathlib import Path

import httpx
import pytest

from helpers.server import Server
from helpers.third_party.packages import own_python

PACKAGES = ("openapi-spec-validator", "openapi-python-client", "schemathesis", "ruff")
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
# With the client that was generated: a typed answer, and a typed error.
USE = """
import sys
from headscope_client import Client
from headscope_client.api.default import ask_roles, create_completion
from headscope_client.models import CompletionRequest
client = Client(base_url=sys.argv[1])
request = CompletionRequest(prompt="ab", max_tokens=2, seed=1)
print(create_completion.sync(client=client, body=request).usage.completion_tokens)
print(ask_roles.sync(client=client, model="nobody").error.code)
"""


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tools' commands."""
    return own_python(tmp_path_factory.mktemp("tools"), *PACKAGES).parent


@pytest.fixture(scope="module")
def document(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("document") / "openapi.json"
    path.write_bytes(httpx.get(f"{server.url}/v1/openapi.json").content)
    return path


def run(tools: Path, folder: Path, *command: object) -> str:
    env = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    words = [tools / str(command[0]), *map(str, command[1:])]
    ran = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True)
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-5000:]
    return ran.stdout + ran.stderr


def test_the_document_is_valid(tools: Path, document: Path) -> None:
    assert run(tools, document.parent, "openapi-spec-validator", document.name).endswith("OK\n")


def test_a_client_is_generated(server: Server, tools: Path, document: Path, tmp_path: Path) -> None:
    said = run(tools, tmp_path, "openapi-python-client", "generate", "--path", document, "--output-path", "client")
    assert "arning" not in said
    paths = json.loads(document.read_text())["paths"].values()
    operations = {operation["operationId"] for path in paths for operation in path.values()}
    assert operations <= {path.stem for path in (tmp_path / "client").glob("headscope_client/api/default/*.py")}
    assert run(tools, tmp_path / "client", "python", "-c", USE, f"{server.url}/v1").split() == ["2", "model_not_found"]


@pytest.mark.timeout(1200)
def test_generated_requests(server: Server, tools: Path, document: Path, tmp_path: Path) -> None:
    options = f"--checks {CHECKS} --phases coverage,fuzzing --max-examples 200 --seed 1 --generation-database none"
    options += " --request-timeout 120"  # seconds; a question about 1,000 rows takes a while
    said = run(tools, tmp_path, "schemathesis", "run", document, "--url", f"{server.url}/v1", *options.split())
    assert "Errors:" not in said
