"""What a killed server leaves of its visitors' texts goes with the next start; what a living one holds stays."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from helpers.files import ROOT
from web.training.work_folder import WorkFolder, remove_leftovers

HOLD = """
import sys
from web.training.work_folder import WorkFolder
folder = WorkFolder()
(folder.path / "text.txt").write_text("private")
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_the_folder_of_a_killed_process_is_removed(temporary: Path) -> None:
    script = f"import tempfile; tempfile.tempdir = {str(temporary)!r}\n{HOLD}"
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        remove_leftovers()
        assert (folder / "text.txt").read_text() == "private"  # its process lives
        process.kill()
        process.wait()
        remove_leftovers()
    assert not list(temporary.iterdir())


def test_a_process_keeps_its_own_folder_until_it_ends(temporary: Path) -> None:
    folder = WorkFolder()
    remove_leftovers()
    assert folder.path.is_dir()
    folder.remove()
    assert not list(temporary.iterdir())


def test_a_folder_without_a_lock_is_a_leftover_and_a_link_is_not_followed(temporary: Path) -> None:
    (temporary / "headscope-training-old" / "tmp1").mkdir(parents=True)
    (temporary / "headscope-training-old" / "tmp1" / "text.txt").write_text("private")
    (temporary / "mine").mkdir()
    (temporary / "headscope-training-link").symlink_to(temporary / "mine")
    (temporary / "headscope-training-file").write_text("not a folder")
    remove_leftovers()
    names = {path.name for path in temporary.iterdir()}
    assert names == {"mine", "headscope-training-link", "headscope-training-file"}
