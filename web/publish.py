"""Publish on the Hugging Face Hub: ``python -m web.publish model FOLDER --repo USER/NAME``, or ``space --repo ...``."""

import argparse
import glob
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from huggingface_hub import ModelCard, RepoCard, SpaceHardware

import model
from model.checkpoint.files import locate, read_text
from model.checkpoint.folder_format import (
    CHAT_TEMPLATE,
    CONFIG,
    GENERATION_CONFIG,
    SHARD_INDEX,
    SNAPSHOTS,
    SPECIAL_TOKENS,
    TOKENIZER,
    TOKENIZER_CONFIG,
    WEIGHTS,
)
from model.checkpoint.hub import HUB_ID
from model.checkpoint.pickled import SUFFIXES
from model.checkpoint.source import SNAPSHOT
from model.checkpoint.vocabulary import ADDED_TOKENS, file_pair
from model.checkpoint.weights import weight_files
from model.seams.hub import is_unreachable

from .runs.openings import DECLARED, FIRST_SCREEN
from .settings import CHECKPOINTS, all_checkpoints

REPO_ID = re.compile(r"[\w-][\w.-]{0,95}/[\w-][\w.-]{0,95}", re.ASCII)


class CannotPublish(Exception):
    """Why something cannot be published, in one sentence."""


@dataclass(frozen=True)
class Plan:
    """A repository and its files. Each path in the repository maps to a local file or to the text to write there."""

    repo_id: str
    repo_type: Literal["model", "space"]
    files: Mapping[str, Path | str]
    hardware: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    shown: tuple[str, ...] = ("README.md",)  # files that ``describe`` prints in full
    replaced: tuple[str, ...] = ()  # patterns: what else matches them in an existing repository is deleted

    def __post_init__(self) -> None:
        if not REPO_ID.fullmatch(self.repo_id):
            raise CannotPublish(f"--repo must be USER/NAME, found {self.repo_id!r}.")

    def size(self, name: str) -> int:
        """The number of bytes of a file."""
        content = self.files[name]
        return len(content.encode()) if isinstance(content, str) else content.stat().st_size

    def text(self, name: str) -> str:
        content = self.files[name]
        return content if isinstance(content, str) else content.read_text(encoding="utf-8")

    def describe(self) -> str:
        """The list of files with their sizes, and the full text of the files in ``shown``."""
        names = sorted(self.files)
        total = sum(map(self.size, names))
        hardware = f" on {self.hardware}" if self.hardware else ""
        lines = [f"{self.repo_type} {self.repo_id}{hardware}: {len(names)} files, {total:,} bytes", ""]
        lines += [f"{self.size(name):>12,}  {name}" for name in names]
        lines += [f"{'variable':>12}  {name}={value}" for name, value in self.variables.items()]
        if self.replaced:
            lines += ["", f"If the Space exists, its other files {', '.join(self.replaced)} are deleted."]
        for name in self.shown:
            lines += ["", f"---- {name}", "", self.text(name).rstrip("\n")]
        return "\n".join(lines)

    def stage(self, folder: Path) -> None:
        """Put all files into ``folder``, as hard links where possible."""
        for name, content in self.files.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, str):
                target.write_text(content, encoding="utf-8")
                continue
            try:
                os.link(os.path.realpath(content), target)
            except OSError:  # on another disk
                shutil.copyfile(content, target)


def upload(plan: Plan, private: bool) -> str:
    """Create the repository if it does not exist, upload the files, and return its address.

    In an existing Space, variables and hardware are set once the files exist. A large upload is several commits. Raises
    ``CannotPublish`` if the Hub refuses or cannot be reached.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError, OfflineModeIsEnabled

    api = HfApi()
    is_space = plan.repo_type == "space"
    variables = [{"key": key, "value": value} for key, value in plan.variables.items()]
    try:
        was_there = api.repo_exists(plan.repo_id, repo_type=plan.repo_type)
        address = api.create_repo(
            plan.repo_id,
            repo_type=plan.repo_type,
            private=private,
            exist_ok=True,
            space_sdk="gradio" if is_space else None,
            space_hardware=SpaceHardware(plan.hardware) if plan.hardware else None,
            space_variables=variables or None,
        )
        with tempfile.TemporaryDirectory(prefix="headscope-publish-") as folder:
            plan.stage(Path(folder))
            api.upload_folder(
                repo_id=plan.repo_id,
                repo_type=plan.repo_type,
                folder_path=folder,
                commit_message="Upload from Headscope",
                delete_patterns=list(plan.replaced) or None,
            )
        if is_space and was_there:  # ``create_repo`` sets both only for a new Space
            for key, value in plan.variables.items():
                api.add_space_variable(plan.repo_id, key, value)
            if plan.hardware:
                api.request_space_hardware(plan.repo_id, SpaceHardware(plan.hardware))
    except LocalTokenNotFoundError:
        raise CannotPublish("There is no token for the Hub: run `hf auth login`, or set HF_TOKEN.") from None
    except OfflineModeIsEnabled:
        raise CannotPublish("HF_HUB_OFFLINE is set, so nothing can be uploaded.") from None
    except HfHubHTTPError as error:
        raise CannotPublish(f"The Hub refused the request: {first_line(error)}") from None
    except Exception as error:
        if not is_unreachable(error):
            raise
        raise CannotPublish(f"The Hub cannot be reached: {first_line(error)}") from None
    return str(address)


def first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


# The files of a checkpoint folder.

OPTIONAL = (
    TOKENIZER_CONFIG,
    CHAT_TEMPLATE,
    GENERATION_CONFIG,
    SPECIAL_TOKENS,
    "training.json",
    ADDED_TOKENS,
    DECLARED,
    FIRST_SCREEN,
    "README.md",
    "LICENSE",
)
PICTURES = ("*.svg", "*.png")


def load_folder(folder: Path) -> model.LoadedModel:
    """The model in ``folder``. Raises ``CannotPublish`` if it cannot be loaded or its weights are a pickle."""
    try:
        loaded = model.load(folder, device="cpu")
        weights = weight_files(folder)
    except model.CheckpointError as error:
        raise CannotPublish(str(error)) from None
    if weights[0].suffix in SUFFIXES:
        raise CannotPublish(
            f"{folder} has its weights in a pickle, {weights[0].name}, which is not published: "
            f"write them as safetensors with `python -m model.checkpoint convert {folder} NEW_FOLDER`."
        )
    return loaded


def files_of(folder: Path) -> dict[str, Path]:
    """The files that ``model.load`` reads from a folder, and those that describe the model, by path in the folder.

    Raises ``CannotPublish`` for a link that leads out of the folder.
    """
    weights = weight_files(folder)
    vocabulary = [folder / TOKENIZER] if (folder / TOKENIZER).is_file() else file_pair(folder) or ()
    paths = [folder / CONFIG, *vocabulary, *weights, *(folder / name for name in OPTIONAL)]
    if weights[0].name != WEIGHTS:
        paths.append(folder / SHARD_INDEX)
    for pattern in PICTURES:
        paths += sorted(folder.glob(pattern))
    paths += sorted((folder / SNAPSHOTS).glob("*.safetensors"))
    kept = [path for path in paths if path.exists() and not path.is_dir() and not path.name.startswith(".")]
    try:
        return {path.relative_to(folder).as_posix(): locate(path, "a file to publish", folder) for path in kept}
    except model.CheckpointError as error:
        raise CannotPublish(str(error)) from None


# A checkpoint as a model repository.

CARD = """\
---
library_name: transformers
pipeline_tag: text-generation
tags: [headscope, gpt2]
---

# {name}

A GPT with {n_parameters:,} weights: {n_layer} layers of {n_head} heads, {n_embd}-dimensional embeddings, a context of
{context_length:,} tokens, and a vocabulary of {vocab_size:,} {tokens}.

## Use

    from transformers import pipeline

    write = pipeline("text-generation", model="{repo_id}")
    print(write({prompt!r}, max_new_tokens=50)[0]["generated_text"])

Headscope shows every attention head while it writes:

    python app.py --checkpoint {repo_id}
"""


def model_plan(folder: Path, repo_id: str) -> Plan:
    """The files of a checkpoint that users need, and its card. Raises ``CannotPublish`` if it cannot be loaded."""
    loaded = load_folder(folder)
    if not (folder / CONFIG).is_file() or not (folder / TOKENIZER).is_file():
        raise CannotPublish(
            f"{folder} is not a checkpoint folder: convert it with `python -m model.checkpoint convert`."
        )
    files: dict[str, Path | str] = {**files_of(folder)}
    card = folder / "README.md"
    files["README.md"] = checked_card(card) if card.is_file() else new_card(loaded, repo_id)
    return Plan(repo_id, "model", files)


def checked_card(path: Path) -> str:
    """The model card in a folder. Raises ``CannotPublish`` if its front matter cannot be read."""
    try:
        text = read_text(path, "a model card")
    except model.CheckpointError as error:
        raise CannotPublish(str(error)) from None
    try:
        ModelCard(text)
    except Exception as error:  # from YAML or the Hub's library
        reason = str(error).splitlines()[0]
        raise CannotPublish(f"{path}: the front matter of the card cannot be read ({reason}).") from None
    return text


def new_card(loaded: model.LoadedModel, repo_id: str) -> str:
    """A card for a folder without one. It names no licence, which only the owner knows."""
    config = loaded.config
    return CARD.format(
        name=repo_id.split("/")[1],
        repo_id=repo_id,
        n_parameters=config.n_parameters,
        n_layer=config.n_layer,
        n_head=config.n_head,
        n_embd=config.n_embd,
        context_length=config.context_length,
        vocab_size=config.vocab_size,
        tokens="characters" if loaded.tokenizer.kind == "char" else "tokens",
        prompt="Once" if loaded.tokenizer.kind == "bpe" else loaded.tokenizer.decode([0]),
    )


# The app with its checkpoints as a Space.

ROOT = Path(__file__).resolve().parents[1]
# Nothing else of this repository is uploaded.
CODE = (
    "app.py",
    "requirements.txt",
    "LICENSE",
    "model/**/*.py",
    "web/**/*.py",
    "web/js/**/*.mjs",
    "web/js/**/*.css",
    "web/js/look/ask/**/*.json",
    "web/learn/*.json",
    "bench/readme/*.png",
    "bench/readme/*.svg",
    "bench/readme/*.webp",
)
HARDWARE = [each.value for each in SpaceHardware]
ZERO_GPU = SpaceHardware.ZERO_A10G.value
# The newest versions that ZeroGPU lists.
ZERO_GPU_PYTHON, ZERO_GPU_TORCH = "3.12", "2.11.0"
TAKEN = "a name in checkpoints/, a folder, or USER/NAME[@REVISION] on the Hub"
SPACES = "spaces==0.*  # the GPU, in web/serving/zero_gpu.py"


def space_plan(repo_id: str, checkpoints: Sequence[str], hardware: str) -> Plan:
    """The app and its ``checkpoints``: names and folders are uploaded with it, Hub ids are fetched by the Space.

    Raises ``CannotPublish`` for a checkpoint that cannot be loaded, or whose weights are in a pickle.
    """
    names = list(checkpoints) or all_checkpoints()
    files: dict[str, Path | str] = {}
    replaced = []
    for pattern in CODE:
        paths = {path.relative_to(ROOT): path for path in sorted(ROOT.glob(pattern)) if path.is_file()}
        if found := {name.as_posix(): path for name, path in paths.items() if not is_hidden(name)}:
            files |= found
            replaced.append(pattern.replace("**/", ""))  # for the Hub, * also matches several folders
    served = []
    for name in names:
        folder = CHECKPOINTS / name if (CHECKPOINTS / name).is_dir() else Path(name)
        if folder.is_dir():
            load_folder(folder)
            top = f"checkpoints/{folder.resolve().name}"
            served.append(folder.resolve().name)
            files |= {f"{top}/{path}": file for path, file in files_of(folder).items()}
            replaced.append(f"{glob.escape(top)}/*")
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
    shown = ("README.md", "requirements.txt")
    return Plan(repo_id, "space", files, hardware, variables, shown, tuple(replaced))


def is_local(name: str) -> bool:
    """Whether this is a file, or a training step of a folder; both may look like a Hub id."""
    snapshot = SNAPSHOT.fullmatch(name)
    return Path(name).is_file() or bool(snapshot and any((top / snapshot[1]).is_dir() for top in (CHECKPOINTS, Path())))


def why_not(name: str) -> str:
    if Path(name).is_file():
        return "convert the file to a folder with `python -m model.checkpoint convert`."
    if is_local(name):
        return "publish the whole folder; each of its training steps can be chosen on the page."
    return "there is no such folder."


def zero_gpu_requirements() -> str:
    """requirements.txt with ZeroGPU's version of torch, and with its own package."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    torch = f"torch=={ZERO_GPU_TORCH}"
    changed = [torch if line.startswith("torch==") else line for line in lines]
    if torch not in changed:
        raise CannotPublish("requirements.txt does not pin torch, so ZeroGPU's version cannot be put in its place.")
    return "\n".join([*changed, SPACES, ""])


def space_card(hardware: str, hub_ids: Sequence[str]) -> str:
    """This repository's README.md, with the Space's hardware and the models it fetches in the front matter."""
    card = RepoCard((ROOT / "README.md").read_text(encoding="utf-8"))
    card.data["suggested_hardware"] = hardware
    if hardware == ZERO_GPU:
        card.data["python_version"] = ZERO_GPU_PYTHON
    if hub_ids:
        card.data["models"] = [name.split("@")[0] for name in hub_ids]
    return str(card)


def is_hidden(path: Path) -> bool:
    """Whether a path inside the repository is hidden. Folders above the repository do not count."""
    return any(part.startswith(".") for part in path.parts)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m web.publish", description="Publish on the Hugging Face Hub.")
    kinds = parser.add_subparsers(dest="kind", required=True)
    as_model = kinds.add_parser("model", help="a checkpoint folder as a model")
    as_model.add_argument("folder", type=Path, metavar="FOLDER", help="the checkpoint folder")
    as_space = kinds.add_parser("space", help="this app as a Space")
    text = f"what to serve: {TAKEN}; everything in checkpoints/ by default"
    as_space.add_argument("--checkpoint", nargs="+", default=[], metavar="NAME_OR_FOLDER_OR_HUB_ID", help=text)
    text = f"one of {', '.join(HARDWARE)}; cpu-basic by default, even for an existing Space"
    as_space.add_argument("--hardware", default="cpu-basic", choices=HARDWARE, metavar="HARDWARE", help=text)
    for command in (as_model, as_space):
        command.add_argument("--repo", required=True, metavar="USER/NAME", help="the repository; created if missing")
        command.add_argument("--private", action="store_true", help="make a new repository private")
        command.add_argument("--dry-run", action="store_true", help="only show what would be uploaded")
    given = parser.parse_args(arguments)
    try:
        plan = plan_of(given)
        print(plan.describe())
        if given.dry_run:
            print("\nNothing was uploaded.")
        else:
            print(f"\nPublished: {upload(plan, given.private)}")
    except CannotPublish as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    return 0


def plan_of(given: argparse.Namespace) -> Plan:
    if given.kind == "model":
        return model_plan(given.folder, given.repo)
    return space_plan(given.repo, given.checkpoint, given.hardware)


if __name__ == "__main__":
    sys.exit(main())
