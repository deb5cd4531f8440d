"""What README promises: its commands run, its example prints what it says, its front matter makes a Space."""

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from helpers.serve_once import ROOT
from model.train.__main__ import main as train

README = (ROOT / "README.md").read_text()
COMMANDS = re.findall(r"^    ((?:pip|python) .*)$", README, re.MULTILINE)


def run(*command: str, cwd: Path = ROOT) -> str:
    done = subprocess.run([sys.executable, *command], cwd=cwd, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def front_matter() -> dict[str, str]:
    block = README.split("---\n")[1]
    return {key: value.strip() for key, _, value in (line.partition(":") for line in block.splitlines())}


def test_the_two_commands_stand_in_readme() -> None:
    assert "pip install -r requirements.txt && python app.py" in COMMANDS
    assert "pip install -r requirements-dev.txt && python -m pytest" in COMMANDS


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_what_is_installed_is_what_the_requirements_ask_for(name: str) -> None:
    run("-m", "pip", "install", "--dry-run", "--no-index", "--quiet", "-r", name)


def test_the_python_example_runs() -> None:
    blocks = re.findall(r"(?:^    .*\n|^\n)+", README, re.MULTILINE)
    example = next(block for block in blocks if "import model" in block)
    source = "\n".join(line[4:] for line in example.splitlines())
    printed = run("-c", source + "\nprint('\\n', trace.attention.shape, trace.logits.shape, trace.tokens[0])")
    assert "torch.Size([6, 8, 6, 6]) torch.Size([6, 65]) Token(id=30, text='R')" in printed


def test_the_training_command_runs(tmp_path: Path) -> None:
    command = next(command for command in COMMANDS if "model.train" in command)
    (tmp_path / "text").write_text("a small text to learn from. " * 40)
    words = command.replace("FILE", str(tmp_path / "text")).replace("checkpoints/mine", str(tmp_path / "mine")).split()
    small = "--n-layer 1 --n-head 2 --n-embd 8 --context-length 8 --steps 3 --batch-size 2".split()
    assert words[:3] == ["python", "-m", "model.train"]
    assert train([*words[3:], *small]) == 0


def test_the_flags_in_readme_exist() -> None:
    words = [word for command in COMMANDS if command.startswith("python app.py") for word in command.split()]
    flags = [word for word in words if word.startswith("--")]
    usage = run("app.py", "--help")
    assert flags and all(flag in usage for flag in flags)


def test_the_front_matter_makes_a_space() -> None:
    space = front_matter()
    assert space["sdk"] == "gradio" and space["app_file"] == "app.py" and (ROOT / space["app_file"]).is_file()
    assert space["sdk_version"] == version("gradio")
    assert space["python_version"] == '"3.12"'  # unquoted, YAML would read a number
    assert len(space["short_description"]) <= 60
    assert space["license"] == "mit" and "MIT" in (ROOT / "LICENSE").read_text()
    assert f"gradio=={space['sdk_version'].rsplit('.', 1)[0]}." in (ROOT / "requirements.txt").read_text()


def test_the_repository_names_no_package_host() -> None:
    """Where packages come from is for the machine to say: a mirror, a wheel house, a cache."""
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
