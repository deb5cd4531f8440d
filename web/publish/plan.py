"""What would be uploaded to the Hub, shown before it is."""

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

REPO_ID = re.compile(r"[\w-][\w.-]{0,95}/[\w-][\w.-]{0,95}", re.ASCII)


class CannotPublish(Exception):
    """Why something cannot be published, in one sentence."""


@dataclass(frozen=True)
class Plan:
    """A repository and its files: by path in the repository, a file of this machine or the text to write there."""

    repo_id: str
    repo_type: Literal["model", "space"]
    files: Mapping[str, Path | str]
    hardware: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    shown: tuple[str, ...] = ("README.md",)  # texts that ``describe`` prints in full

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
        """The file list with sizes, and the texts that matter most."""
        names = sorted(self.files)
        total = sum(map(self.size, names))
        hardware = f" on {self.hardware}" if self.hardware else ""
        lines = [f"{self.repo_type} {self.repo_id}{hardware}: {len(names)} files, {total:,} bytes", ""]
        lines += [f"{self.size(name):>12,}  {name}" for name in names]
        lines += [f"{'variable':>12}  {name}={value}" for name, value in self.variables.items()]
        if self.repo_type == "space":
            lines += ["", "If the Space exists, all its other files are deleted."]
        for name in self.shown:
            lines += ["", f"---- {name}", "", self.text(name).rstrip("\n")]
        return "\n".join(lines)

    def stage(self, folder: Path) -> None:
        """Put all files into ``folder``, as hard links where that is possible."""
        for name, content in self.files.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, str):
                target.write_text(content, encoding="utf-8")
                continue
            try:
                os.link(os.path.realpath(content), target)
            except OSError:  # another disk
                shutil.copyfile(content, target)


def upload(plan: Plan, private: bool) -> str:
    """Create the repository where there is none, upload the files, and return the address.

    Of a Space that exists, the files that are not in the plan are deleted; its variables and its hardware are set once
    the files are there. A large upload is several commits. Raises ``CannotPublish`` if the Hub refuses or cannot be
    reached.
    """
    from huggingface_hub import HfApi, SpaceHardware
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
                delete_patterns="*" if is_space else None,
            )
        if is_space and was_there:  # ``create_repo`` sets both for a new one only
            for key, value in plan.variables.items():
                api.add_space_variable(plan.repo_id, key, value)
            if plan.hardware:
                api.request_space_hardware(plan.repo_id, SpaceHardware(plan.hardware))
    except LocalTokenNotFoundError:
        raise CannotPublish("No token for the Hub: run `hf auth login`, or set HF_TOKEN.") from None
    except OfflineModeIsEnabled:
        raise CannotPublish("HF_HUB_OFFLINE is set, so nothing can be uploaded.") from None
    except HfHubHTTPError as error:
        raise CannotPublish(f"The Hub refused: {first_line(error)}") from None
    except Exception as error:
        if not is_network_error(error):
            raise
        raise CannotPublish(f"The Hub cannot be reached: {first_line(error)}") from None
    return str(address)


def first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def is_network_error(error: Exception) -> bool:
    """Whether the connection failed; the Hub's client has changed its HTTP library before."""
    return isinstance(error, OSError) or any(kind.__name__ == "TransportError" for kind in type(error).__mro__)
