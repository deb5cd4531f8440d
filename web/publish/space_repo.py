"""The app with its checkpoints as a Space."""

from collections.abc import Sequence
from pathlib import Path

from huggingface_hub import RepoCard, SpaceHardware

from model.checkpoint.hub import HUB_ID
from model.checkpoint.source import SNAPSHOT

from ..settings import CHECKPOINTS, all_checkpoints
from .folder import files_of, load_folder
from .plan import CannotPublish, Plan

ROOT = Path(__file__).resolve().parents[2]
CODE = ("app.py", "requirements.txt", "LICENSE")
CODE_FOLDERS = ("model", "web", "bench/readme")
CODE_SUFFIXES = {".py", ".mjs", ".css", ".json", ".png", ".svg", ".webp"}
HARDWARE = [each.value for each in SpaceHardware]
ZERO_GPU = SpaceHardware.ZERO_A10G.value
# The newest that ZeroGPU lists.
ZERO_GPU_PYTHON, ZERO_GPU_TORCH = "3.12", "2.11.0"
TAKEN = "a name in checkpoints/, a folder, or USER/NAME[@REVISION] on the Hub"
SPACES = "spaces==0.*  # the GPU, in web/serving/zero_gpu.py"


def space_plan(repo_id: str, checkpoints: Sequence[str], hardware: str) -> Plan:
    """The app, and the ``checkpoints``: names or folders are uploaded with it, Hub ids are fetched by the Space.

    Raises ``CannotPublish`` for a checkpoint that cannot be loaded, or whose weights are in a pickle.
    """
    names = list(checkpoints) or all_checkpoints()
    files: dict[str, Path | str] = {name: ROOT / name for name in CODE}
    for top in CODE_FOLDERS:
        paths = (path for path in sorted((ROOT / top).rglob("*")) if path.suffix in CODE_SUFFIXES)
        files |= {path.relative_to(ROOT).as_posix(): path for path in paths if path.is_file() and not is_hidden(path)}
    served = []
    for name in names:
        folder = CHECKPOINTS / name if (CHECKPOINTS / name).is_dir() else Path(name)
        if folder.is_dir():
            load_folder(folder)
            top = f"checkpoints/{folder.resolve().name}"
            served.append(folder.resolve().name)
            files |= {f"{top}/{path}": file for path, file in files_of(folder).items()}
        elif HUB_ID.fullmatch(name) and not is_local(name):
            served.append(name)
        else:
            raise CannotPublish(f"--checkpoint takes {TAKEN}, found {name!r}: {why_not(name)}")
    if len(set(served)) != len(served):
        raise CannotPublish("Two checkpoints have the same name.")
    if hardware == ZERO_GPU:
        files["requirements.txt"] = zero_gpu_requirements()
    files["README.md"] = space_card(hardware, [name for name in served if "/" in name])
    variables = {"HEADSCOPE_CHECKPOINT": ",".join(served)}
    return Plan(repo_id, "space", files, hardware, variables, shown=("README.md", "requirements.txt"))


def is_local(name: str) -> bool:
    """Whether this is a file or a training step of a folder, either of which may look like a Hub id."""
    snapshot = SNAPSHOT.fullmatch(name)
    return Path(name).is_file() or bool(snapshot and any((top / snapshot[1]).is_dir() for top in (CHECKPOINTS, Path())))


def why_not(name: str) -> str:
    if Path(name).is_file():
        return "make a folder of a file with `python -m model.checkpoint convert`."
    if is_local(name):
        return "publish the whole folder; each of its training steps can be chosen on the page."
    return "there is no such folder."


def zero_gpu_requirements() -> str:
    """requirements.txt with the torch that ZeroGPU has, and with its own package."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    torch = f"torch=={ZERO_GPU_TORCH}"
    changed = [torch if line.startswith("torch==") else line for line in lines]
    if torch not in changed:
        raise CannotPublish("requirements.txt pins no torch, so that ZeroGPU's cannot take its place.")
    return "\n".join([*changed, SPACES, ""])


def space_card(hardware: str, hub_ids: Sequence[str]) -> str:
    """README.md of this repository, with the Space's hardware and the models it fetches in the front matter."""
    card = RepoCard((ROOT / "README.md").read_text(encoding="utf-8"))
    card.data["suggested_hardware"] = hardware
    if hardware == ZERO_GPU:
        card.data["python_version"] = ZERO_GPU_PYTHON
    if hub_ids:
        card.data["models"] = [name.split("@")[0] for name in hub_ids]
    return str(card)


def is_hidden(path: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.parts)
