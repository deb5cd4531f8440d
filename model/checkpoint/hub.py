"""Checkpoints in repositories on the Hugging Face Hub."""

import re
from pathlib import Path

from ..errors import CheckpointError, HubError
from .folder_format import (
    CHAT_TEMPLATE,
    CONFIG,
    OLDER_WEIGHTS,
    SHARD_INDEX,
    TOKENIZER,
    TOKENIZER_CONFIG,
    WEIGHTS,
    read_chat_template,
    read_config,
)
from .vocabulary import FILE_PAIRS, has_tokenizer, read_tokenizer
from .weights import weight_files

HUB_ID = re.compile(r"([A-Za-z0-9][\w.-]{0,95}/[\w.-]{1,96})(?:@([\w./-]{1,200}))?", re.ASCII)  # USER/NAME@REVISION
SMALL_FILES = [CONFIG, TOKENIZER, TOKENIZER_CONFIG, CHAT_TEMPLATE, SHARD_INDEX, *FILE_PAIRS[0]]


def download(source: str) -> Path:
    """The local folder of a Hub repository, ``USER/NAME`` or ``USER/NAME@REVISION``.

    Config, vocabulary and chat template are downloaded and checked before the weights; nothing else is downloaded.
    Cached files are not downloaded again, and are used without a network. Raises ``CheckpointError``.
    """
    matched = HUB_ID.fullmatch(source)
    assert matched is not None
    repo_id, revision = matched[1], matched[2]
    try:
        folder = fetch(repo_id, revision, SMALL_FILES)
        read_config(folder)
        if not has_tokenizer(folder):
            raise HubError(source, f"it has neither {TOKENIZER} nor {' and '.join(FILE_PAIRS[0])}")
        read_tokenizer(folder)
        read_chat_template(folder)
        wanted = [path.name for path in weight_files(folder)] if (folder / SHARD_INDEX).is_file() else [WEIGHTS]
        fetch(repo_id, revision, wanted)
        if wanted == [WEIGHTS] and not (folder / WEIGHTS).is_file():
            fetch(repo_id, revision, [OLDER_WEIGHTS])
        if not weight_files(folder)[0].is_file():
            raise HubError(source, f"it has neither {WEIGHTS} nor {OLDER_WEIGHTS}, or the cache lacks them")
    except CheckpointError:
        raise
    except Exception as error:  # the Hub's client raises unrelated types
        raise HubError(source, reason_of(error, revision)) from error
    return folder


def fetch(repo_id: str, revision: str | None, names: list[str]) -> Path:
    """Download those of the named files that the repository has, and return its local folder."""
    from huggingface_hub import snapshot_download

    return Path(snapshot_download(repo_id, revision=revision, allow_patterns=names))


def reason_of(error: Exception, revision: str | None) -> str:
    """The reason why a repository cannot be downloaded, in one sentence."""
    from huggingface_hub.errors import (
        GatedRepoError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    if isinstance(error, GatedRepoError):
        return "its owner has to grant access first: ask on its page, then set HF_TOKEN"
    if isinstance(error, RepositoryNotFoundError):
        return "the Hub has no such repository, or it is private: set HF_TOKEN to read it"
    if isinstance(error, RevisionNotFoundError):
        return f"the repository has no revision {revision!r}"
    unreachable = (LocalEntryNotFoundError, OfflineModeIsEnabled, ConnectionError, TimeoutError)
    if isinstance(error, unreachable) or is_network_error(error):
        return "the Hub cannot be reached, and it is not in the cache"
    first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
    return f"it cannot be downloaded ({first_line.rstrip('.')})"


def is_network_error(error: Exception) -> bool:
    """Whether the connection failed; independent of the HTTP library, as the Hub's client has switched before."""
    return any(kind.__name__ == "TransportError" for kind in type(error).__mro__)
