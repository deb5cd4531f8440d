"""Checkpoints in repositories on the Hugging Face Hub."""

import re
from functools import partial
from pathlib import Path

from ..errors import CheckpointError, HubError
from ..seams.hub import is_unreachable
from .conventions import read_chat_template, read_end_ids, read_named_tokens, read_object
from .folder_format import (
    ADAPTER,
    CHAT_TEMPLATE,
    CONFIG,
    GENERATION_CONFIG,
    OLDER_SHARD_INDEX,
    SHARD_INDEX,
    SPECIAL_TOKENS,
    TOKENIZER,
    TOKENIZER_CONFIG,
    WEIGHT_FILES,
    check_not_adapter,
    read_config,
)
from .vocabulary import ADDED_TOKENS, FILE_PAIRS, has_tokenizer, read_tokenizer
from .weights import weight_files

# USER/NAME@REVISION; with any of the characters in SEVERAL, the revision is a pattern that stands for training steps.
HUB_ID = re.compile(r"([A-Za-z0-9][\w.-]{0,95}/[\w.-]{1,96})(?:@([\w./*?+-]{1,4000}))?", re.ASCII)
SEVERAL = re.compile(r"[*?+]")
SMALL_FILES = [CONFIG, TOKENIZER, TOKENIZER_CONFIG, SPECIAL_TOKENS, ADDED_TOKENS, *FILE_PAIRS[0]]
SMALL_FILES += [CHAT_TEMPLATE, GENERATION_CONFIG, ADAPTER, SHARD_INDEX, OLDER_SHARD_INDEX]


def download(source: str, cache: Path | None = None) -> Path:
    """The local folder of a Hub repository, ``USER/NAME`` or ``USER/NAME@REVISION``, in ``cache`` or the Hub's own.

    Config, vocabulary and chat template are downloaded and checked before the weights; nothing else is downloaded.
    Cached files are not downloaded again, and are used without a network. Raises ``CheckpointError``.
    """
    repo_id, revision = repository_of(source)
    if revision and SEVERAL.search(revision):
        raise HubError(source, "only app.py opens several revisions: name one of them")
    fetch = partial(fetch_files, repo_id, revision, cache)
    try:
        folder = fetch(SMALL_FILES)
        config = read_config(folder)
        if not has_tokenizer(folder):
            raise HubError(source, f"it has neither {TOKENIZER} nor {' and '.join(FILE_PAIRS[0])}")
        tokenizer = read_tokenizer(folder)
        named = read_named_tokens(folder, tokenizer, config.model_type)
        read_end_ids(folder, read_object(folder / GENERATION_CONFIG), named, tokenizer, config.config.vocab_size)
        read_chat_template(folder)
        for name in WEIGHT_FILES:
            if name not in SMALL_FILES:
                fetch([name])
            if (folder / name).is_file():
                break
        else:
            check_not_adapter(folder)
            raise HubError(source, f"it has no weights ({', '.join(WEIGHT_FILES)}), or the cache lacks them")
        weights = weight_files(folder)
        if name in SMALL_FILES:  # an index
            fetch([path.name for path in weights])
        if missing := [path.name for path in weights if not path.is_file()]:
            raise HubError(source, f"it has no {missing[0]}, or the cache lacks it")
    except CheckpointError:
        raise
    except Exception as error:  # the Hub's client raises unrelated types
        raise HubError(source, reason_of(error, revision)) from error
    return folder


def repository_of(source: str) -> tuple[str, str | None]:
    """The id and the revision in what ``HUB_ID`` matches."""
    matched = HUB_ID.fullmatch(source)
    assert matched is not None
    return matched[1], matched[2]


def fetch_files(repo_id: str, revision: str | None, cache: Path | None, names: list[str]) -> Path:
    """Download those of the named files that the repository has, and return its local folder."""
    from huggingface_hub import snapshot_download

    return Path(snapshot_download(repo_id, revision=revision, cache_dir=cache, allow_patterns=names))


def reason_of(error: Exception, revision: str | None) -> str:
    """The reason why a repository cannot be downloaded, in one sentence."""
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

    if isinstance(error, GatedRepoError):
        return "its owner has to grant access first: ask on its page, then set HF_TOKEN"
    if isinstance(error, RepositoryNotFoundError):
        return "the Hub has no such repository, or it is private: set HF_TOKEN to read it"
    if isinstance(error, RevisionNotFoundError):
        return f"the repository has no revision {revision!r}"
    if is_unreachable(error):
        return "the Hub cannot be reached, and the repository is not in its cache"
    first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
    return f"it cannot be downloaded ({first_line.rstrip('.')})"
