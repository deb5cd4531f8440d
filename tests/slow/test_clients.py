"""LangChain, litellm and llm, installed in a separate environment, get answers from the app."""

import json
import subprocess
from pathlib import Path

import pytest

from helpers.server import Server
from helpers.third_party import openai_clients
from helpers.third_party.packages import own_python

PACKAGES = ("langchain-openai", "litellm", "llm")
TRANSCRIPT_STOPS = ["\nSystem:", "\nUser:", "\nAssistant:"]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return own_python(tmp_path_factory.mktemp("clients"), *PACKAGES)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_clients_that_people_use(server: Server, python: Path, tmp_path: Path) -> None:
    command = [python, openai_clients.__file__, f"{server.url}/v1", "tiny", tmp_path]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-3000:]
    told = json.loads(ran.stdout.splitlines()[-1])
    loaded = server.services.served.models["tiny"]
    question = openai_clients.QUESTION

    def written(prompt: str, stop: list[str]) -> str:
        return "".join(step.text for step in loaded.generate(prompt, 8, temperature=0, stop=stop))

    answer = written(f"User: {question}\nAssistant:", TRANSCRIPT_STOPS)
    conversation = f"System: Be.\nUser: a\nAssistant: b\nUser: {question}\nAssistant:"
    langchain, litellm, llm = told["langchain"], told["litellm"], told["llm"]
    assert langchain["whole"] == langchain["streamed"] == written(conversation, TRANSCRIPT_STOPS)
    assert langchain["logprobs"] == 8
    assert langchain["text"] == written(question, [])
    assert litellm["whole"] == litellm["streamed"] == answer
    assert llm["whole"].strip() == llm["streamed"].strip() == answer.strip()
    embedding = loaded.embed(question).tolist()
    assert langchain["embedding"] == pytest.approx(embedding, abs=1e-5)
    assert litellm["embedding"] == pytest.approx(embedding, abs=1e-5)
