"""LangChain, litellm, llm and lm-evaluation-harness get answers from the app, as docs/clients.md says."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from helpers.files import ROOT
from helpers.server import Server
from helpers.third_party import openai_clients
from helpers.third_party.packages import with_packages

PACKAGES = ("langchain-openai", "litellm", "llm", "lm_eval[api]")
TRANSCRIPT_STOPS = ["\nSystem:", "\nUser:", "\nAssistant:"]
STORIES = ROOT / "checkpoints" / "stories-bpe"
STORY = "Once upon a time there was a girl named Lily. She had a red ball. Her dog ran after it and barked. "


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("recipes")
    offline = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "HF_DATASETS_OFFLINE": "1"}
    folders = {"LLM_USER_PATH": str(folder), "HF_HOME": str(folder)}
    return {**with_packages(folder, *PACKAGES), **offline, **folders}


@pytest.mark.timeout(900)
def test_clients_that_people_use(server: Server, environment: dict[str, str], tmp_path: Path) -> None:
    command = [sys.executable, openai_clients.__file__, f"{server.url}/v1", "tiny", tmp_path]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
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


def recipe(name: str, server: Server) -> list[str]:
    """The blocks of a recipe after its ``pip install``."""
    section = (ROOT / "docs" / "clients.md").read_text().split(f"\n## {name}\n")[1].split("\n## ")[0]
    section = section.replace("http://127.0.0.1:7860", server.url).replace("checkpoints/stories-bpe", str(STORIES))
    blocks = re.findall(r"(?:^    .*\n|^\n)+", section, re.MULTILINE)
    code = [re.sub(r"^    ", "", block, flags=re.MULTILINE).strip() for block in blocks]
    return [re.sub(r"^pip install .*\n*", "", block) for block in code if block]


def run(blocks: list[str], environment: dict[str, str], folder: Path) -> str:
    source = "\n".join(blocks)
    python = re.match("from|import", source)
    command = [sys.executable, "-c", source] if python else ["bash", "-ec", source]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout


@pytest.mark.timeout(900)
def test_recipes_run_as_they_are_written(launch: Any, environment: dict[str, str], tmp_path: Path) -> None:
    server = launch(STORIES)
    story, n_numbers = run(recipe("LangChain", server), environment, tmp_path).rsplit(maxsplit=1)
    assert len(story) > 50 and n_numbers == "320"
    for name in ("litellm", "llm"):
        assert len(run(recipe(name, server), environment, tmp_path)) > 50
    (tmp_path / "mine.txt").write_text(STORY * 12)
    tables = run(recipe("lm-evaluation-harness", server), environment, tmp_path)
    here, transformers = re.findall(r"bits_per_byte\|.*?\|([0-9.]+)\|", re.sub(" ", "", tables))
    assert here == transformers and 0 < float(here) < 2
