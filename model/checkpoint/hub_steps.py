"""Training steps that a Hub repository publishes as revisions, and a bounded folder of their files."""

import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from ..errors import CheckpointError, HubError
from ..seams.hub import is_unreachable
from .folder_format import CONFIG, WEIGHT_FILES
from .hub import download, reason_of, repository_of
from .vocabulary import has_tokenizer
from .weights import weight_files

# The first word that stands for a step, with its number: step512, stage1-step-50K-tokens2B, checkpoint_500, iter1m.
STEP = re.compile(r".*?(?:step|iter|iteration|ckpt|checkpoint)s?[-_]?(\d{1,9})([km]?)(?![a-z\d.])", re.ASCII | re.I)
MAX_STEP = 10**9
LEFT_SECONDS = 3_600.0  # a partial download of this age was left by a process that was killed


class Revision(NamedTuple):
    """A branch or a tag of a repository, and the hash of its commit."""

    repo_id: str
    name: str
    commit: str


class HubSteps:
    """The files of training steps, in ``folder``, which is laid out like the Hub's cache.

    The least recently used steps are deleted while ``folder`` has more than ``max_bytes``. Steps that are already in
    the Hub's own cache are used from there and never deleted.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder, self.max_bytes = folder, max_bytes
        self.n_in_use = 0
        self.lock = threading.Lock()

    @property
    def caches(self) -> tuple[Path, Path]:
        """The Hub's own cache, and this one."""
        from huggingface_hub.constants import HF_HUB_CACHE

        return Path(HF_HUB_CACHE), self.folder

    def find(self, source: str) -> dict[int, Revision]:
        """The revisions that ``USER/NAME@PATTERN`` stands for, by training step, in order.

        The pattern may contain the wildcards ``*`` and ``?``; ``+`` joins several patterns. A revision is a step if
        ``step_of`` says so. Without a network, those in the caches are found. Raises ``HubError``.
        """
        repo_id, patterns = repository_of(source)
        try:
            commits, where = published(repo_id), "the repository has"
        except Exception as error:  # the Hub's client raises unrelated types
            if not is_unreachable(error):
                raise HubError(source, reason_of(error, None)) from error
            commits, where = self.cached_commits(repo_id), "the Hub cannot be reached, and its cache has"
        revisions: dict[int, Revision] = {}
        named = [(step, name) for name in commits if (step := step_of(name)) is not None]
        for pattern in (patterns or "").split("+"):
            steps = [(step, name) for step, name in named if fnmatchcase(name, pattern)]
            if not steps:
                raise HubError(source, f"{where} no training step {pattern!r}")
            for step, name in steps:
                other = revisions.setdefault(step, Revision(repo_id, name, commits[name])).name
                if other != name:
                    raise HubError(source, f"{other!r} and {name!r} are both step {step:,}: choose one of them")
        return dict(sorted(revisions.items()))

    @contextmanager
    def files(self, revision: Revision, keep: bool = False) -> Iterator[Path]:
        """The folder of a revision, downloaded if necessary: to the Hub's own cache if ``keep``.

        No step is deleted until the context is left. Raises ``CheckpointError``.
        """
        with self.lock:
            self.n_in_use += 1
        try:
            source = f"{revision.repo_id}@{revision.name}"
            folder = self.cached(revision) or download(source, None if keep else self.folder)
            with suppress(OSError):
                os.utime(folder)  # marks it as used now
            yield folder
        finally:
            with self.lock:
                self.n_in_use -= 1
                if not self.n_in_use:
                    self.trim()

    def cached(self, revision: Revision) -> Path | None:
        """The folder of a revision if all needed files are cached, else None."""
        from huggingface_hub import try_to_load_from_cache

        for cache in self.caches:
            config = try_to_load_from_cache(revision.repo_id, CONFIG, cache, revision.commit)
            if isinstance(config, str):
                folder = Path(config).parent
                with suppress(CheckpointError):
                    if has_tokenizer(folder) and all(path.is_file() for path in weight_files(folder)):
                        return folder
        return None

    def cached_commits(self, repo_id: str) -> dict[str, str]:
        """The commit of each branch and tag whose weights are cached."""
        from huggingface_hub import CacheNotFound, scan_cache_dir

        commits: dict[str, str] = {}
        for cache in self.caches:
            with suppress(CacheNotFound):
                for repository in scan_cache_dir(cache).repos:
                    for revision in repository.revisions if repository.repo_id == repo_id else ():
                        if set(WEIGHT_FILES) & {file.file_name for file in revision.files}:
                            commits |= dict.fromkeys(revision.refs, revision.commit_hash)
        return commits

    def trim(self) -> None:
        """Delete the least recently used steps until the rest fits; the newest one is kept."""
        from huggingface_hub import CacheNotFound, scan_cache_dir

        with suppress(CacheNotFound, OSError):
            for path in self.folder.glob("*/blobs/*.incomplete"):
                if time.time() - path.stat().st_mtime > LEFT_SECONDS:
                    path.unlink(missing_ok=True)
            cache = scan_cache_dir(self.folder)
            revisions = [revision for repository in cache.repos for revision in repository.revisions]
            revisions.sort(key=lambda revision: revision.snapshot_path.stat().st_mtime)
            for revision in revisions[:-1]:
                if cache.size_on_disk <= self.max_bytes:
                    break
                cache.delete_revisions(revision.commit_hash).execute()
                cache = scan_cache_dir(self.folder)


def step_of(revision: str) -> int | None:
    """The training step that a revision's name gives, or None if it gives none.

    It follows ``step``, ``iter``, ``iteration``, ``ckpt`` or ``checkpoint``, after ``-``, ``_`` or nothing,
    and may end in ``k`` for thousands or ``m`` for millions. ``v1.0``, ``2024-01-01`` and ``main`` are no steps.
    """
    match = STEP.match(revision)
    step = int(match[1]) * {"": 1, "k": 1_000, "m": 1_000_000}[match[2].lower()] if match else MAX_STEP
    return step if step < MAX_STEP else None


def published(repo_id: str) -> dict[str, str]:
    """The commit of each branch and tag of a repository on the Hub."""
    from huggingface_hub import list_repo_refs

    refs = list_repo_refs(repo_id)
    return {ref.name: ref.target_commit for ref in (*refs.tags, *refs.branches)}
