"""README and docs/ are correct: commands and examples run, links have targets, and the front matter makes a Space."""

import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from helpers.engine import KERNELS
from helpers.serve_once import ROOT
from model.train.__main__ import main as train
from web import settings

README = (ROOT / "README.md").read_text()
COMMANDS = re.findall(r"^    ((?:pip|python) .*)$", README, re.MULTILINE)
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
FLAGS_OF_BENCH = {"--quick"}
MAX_LINES = 180  # of README: what someone reads in five minutes


def commands_in(document: Path) -> list[str]:
    """The commands in a document that are on lines of their own, split at ``&&``."""
    lines = re.findall(r"^    ((?:pip|python|docker|serve|transformers|vllm) .*)$", document.read_text(), re.MULTILINE)
    return [command.strip() for line in lines for command in line.split("&&")]


def examples_in(document: Path) -> list[str]:
    """The Python examples of a document, one after the other, without their indentation."""
    blocks = re.findall(r"(?:^    .*\n|^\n)+", document.read_text(), re.MULTILINE)
    sources = ["\n".join(line[4:] for line in block.splitlines()) for block in blocks]
    return [
        source for source in sources if re.search(r"^(?:import |\w+ = |for |\w+\.\w+\()", source.lstrip(), re.MULTILINE)
    ]


def run(*command: str, home: Path | None = None) -> str:
    env = os.environ | ({"HOME": str(home)} if home else {})
    done = subprocess.run([sys.executable, *command], cwd=ROOT, env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def front_matter() -> dict[str, str]:
    block = README.split("---\n")[1]
    return {key: value.strip() for key, _, value in (line.partition(":") for line in block.splitlines())}


def test_readme_contains_the_two_commands() -> None:
    assert "pip install -r requirements.txt && python app.py" in COMMANDS
    assert "pip install -r requirements-dev.txt && python -m pytest" in COMMANDS


def test_readme_is_short() -> None:
    assert len(README.splitlines()) <= MAX_LINES


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_links_lead_to_files_that_exist(document: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)|(?:src|srcset)=\"([^\"]+)\"", document.read_text())
    local = [path or picture for path, picture in targets if not (path or picture).startswith("http")]
    assert not [path for path in local if not (document.parent / path).exists()]


@pytest.mark.slow
def test_the_python_examples_run(tmp_path: Path) -> None:
    """In one process, since each would import torch, but with separate globals."""
    shown = "print('\\n', trace.attention.shape, trace.logits.shape, trace.tokens[0])"
    documents = ("README.md", "docs/python.md")
    sources = ["\n".join([*examples_in(ROOT / document), shown]) for document in documents]
    KERNELS.mkdir(exist_ok=True)
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "headscope").symlink_to(KERNELS)  # where the examples cache compiled code
    printed = run("-c", f"for source in {sources!r}: exec(source, {{}})", home=tmp_path)
    assert printed.count("torch.Size([6, 8, 6, 6]) torch.Size([6, 65]) Token(id=30, text='R')") == len(documents)


def test_the_training_command_runs(tmp_path: Path) -> None:
    command = next(command for command in COMMANDS if "model.train" in command)
    (tmp_path / "text").write_text("a small text to learn from. " * 40)
    words = command.replace("FILE", str(tmp_path / "text")).replace("checkpoints/mine", str(tmp_path / "mine")).split()
    small = "--n-layer 1 --n-head 2 --n-embd 8 --context-length 8 --steps 3 --batch-size 2".split()
    assert words[:3] == ["python", "-m", "model.train"]
    assert train([*words[3:], *small]) == 0


def test_the_flags_in_readme_exist(capsys: pytest.CaptureFixture[str]) -> None:
    commands = [command for document in DOCUMENTS for command in commands_in(document)]
    about_flags = [document.read_text() for document in DOCUMENTS if document.stem in ("limits", "http", "SECURITY")]
    text = " ".join([*(command for command in commands if command.startswith("python app.py")), *about_flags])
    flags = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", text)) - FLAGS_OF_BENCH
    with pytest.raises(SystemExit):
        settings.parse(["--help"], {})
    usage = capsys.readouterr().out
    assert flags and not {flag for flag in flags if flag not in usage}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_modules_that_are_run_exist(document: Path) -> None:
    for name in re.findall(r"python -m ((?:model|web|bench)[\w.]*)", document.read_text()):
        folder = ROOT.joinpath(*name.split("."))
        assert folder.with_suffix(".py").is_file() or (folder / "__main__.py").is_file(), name


def test_the_front_matter_makes_a_space() -> None:
    space = front_matter()
    assert space["sdk"] == "gradio" and space["app_file"] == "app.py" and (ROOT / space["app_file"]).is_file()
    assert space["sdk_version"] == version("gradio")
    assert space["python_version"] == '"3.12"'  # unquoted, YAML would read a number
    assert len(space["short_description"]) <= 60
    assert space["license"] == "mit" and "MIT" in (ROOT / "LICENSE").read_text()
    assert f"gradio=={space['sdk_version'].rsplit('.', 1)[0]}." in (ROOT / "requirements.txt").read_text()


def test_the_repository_names_no_package_host() -> None:
    """The machine decides where packages come from: a mirror, a wheel folder, a cache."""
    folders = ("model", "web", "bench", "tests", "checkpoints", ".ci")
    files = [*ROOT.glob("*.*"), *(path for folder in folders for path in (ROOT / folder).rglob("*"))]
    texts = {
        path: path.read_bytes()
        for path in files
        if path.suffix in ("", ".md", ".txt", ".toml", ".py") and path.is_file()
    }
    assert ROOT / ".ci" / "run" in texts
    hosts = (b"pypi" + b".org", b"download.pytorch" + b".org", b"files.python" + b"hosted")
    assert not [path for path, text in texts.items() if any(host in text for host in hosts)]
