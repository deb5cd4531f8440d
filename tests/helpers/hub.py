"""A stand-in for the Hub: a folder of revisions, which the client's functions copy into the layout of its cache."""

import fnmatch
import hashlib
import threading
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub import GitRefInfo, GitRefs

REPOSITORY = "someone/gpt"


def commit_of(revision: str) -> str:
    return hashlib.sha1(revision.encode()).hexdigest()


class StandInHub:
    """Has the repository ``someone/gpt``, whose revisions are the folders in ``remote``.

    ``cache`` is the client's own cache. ``fetched`` lists the revision and the name of every file downloaded. Offline,
    the client's real functions are called, which the variable HF_HUB_OFFLINE of the tests keeps from the network.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.remote, self.cache = folder / "remote", folder / "cache"
        self.fetched: list[tuple[str, str]] = []
        self.is_online = True
        self.writing = threading.Lock()  # a blob may be part of two revisions
        self.download = huggingface_hub.snapshot_download
        self.list = huggingface_hub.list_repo_refs
        self.remote.mkdir()
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(self.cache))
        monkeypatch.setattr(huggingface_hub, "snapshot_download", self.snapshot_download)
        monkeypatch.setattr(huggingface_hub, "list_repo_refs", self.list_repo_refs)

    def list_repo_refs(self, repo_id: str) -> GitRefs:
        if not self.is_online:
            return self.list(repo_id)
        assert repo_id == REPOSITORY
        names = [path.name for path in self.remote.iterdir()]
        return GitRefs([GitRefInfo(name, f"refs/heads/{name}", commit_of(name)) for name in names], [], [])

    def snapshot_download(
        self, repo_id: str, *, revision: str, cache_dir: Path | None, allow_patterns: list[str]
    ) -> str:
        if not self.is_online:
            return self.download(repo_id, revision=revision, cache_dir=cache_dir, allow_patterns=allow_patterns)
        assert repo_id == REPOSITORY
        top = Path(cache_dir or self.cache) / "models--someone--gpt"
        snapshot = top / "snapshots" / commit_of(revision)
        for folder in (top / "refs", top / "blobs", snapshot):
            folder.mkdir(parents=True, exist_ok=True)
        (top / "refs" / revision).write_text(commit_of(revision))
        for path in sorted((self.remote / revision).iterdir()):
            if any(fnmatch.fnmatch(path.name, pattern) for pattern in allow_patterns):
                content = path.read_bytes()
                blob = top / "blobs" / hashlib.sha256(content).hexdigest()
                with self.writing:
                    if not blob.exists():
                        blob.write_bytes(content)
                    if not (snapshot / path.name).exists():
                        (snapshot / path.name).symlink_to(f"../../blobs/{blob.name}")
                        self.fetched.append((revision, path.name))
        return str(snapshot)
