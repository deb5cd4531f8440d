"""The sources of a model: a checkpoint folder, a file of another implementation, or a Hub repository."""

import logging
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from ..config import Activation, GPTConfig
from ..errors import CheckpointError, counted, readable
from ..tokenizer import END_OF_TEXT, CharTokenizer, Tokenizer
from .conventions import read_chat_template, read_end_ids, read_generation_config, read_named_tokens
from .families.gpt2 import GPT2
from .files import checkpoint_errors, locate
from .folder_format import CONFIG, FAMILIES, SNAPSHOTS, TOKENIZER, read_config
from .hub import HUB_ID, download
from .layouts import State, complete, config_of, from_book, from_nanogpt, is_book, unwrapped
from .pickled import SUFFIXES, read_pickled
from .vocabulary import ALPHABET, PICKLES, has_tokenizer, read_tokenizer
from .weights import (
    SAFETENSORS,
    check_memory,
    file_hash,
    gpt_on_meta,
    read_weights,
    weight_files,
)

log = logging.getLogger(__name__)

SNAPSHOT = re.compile(r"(.+)@(\d{6,})", re.ASCII)  # FOLDER@NNNNNN
Keep = Callable[[GPTConfig, str, Tensor], Tensor]  # converts a tensor as it is read, given its name in ``GPT``
SOURCES = "a checkpoint folder, a file of weights, or a Hub repository, USER/NAME"
NANOGPT_META = "meta.pkl"  # the file with nanoGPT's alphabet
PADDED_TO = 64  # vocabularies are often padded to a multiple of this, which makes matrix products faster


class Source(NamedTuple):
    """A checkpoint as read. ``state`` holds the weights under their names in ``GPT``."""

    name: str
    config: GPTConfig
    tokenizer: Tokenizer
    bos_token_id: int | None
    eos_token_id: int | None
    state: State
    sha256: str  # of the weight files
    chat_template: str = ""  # in Jinja; "" if there is none
    other_end_ids: tuple[int, ...] = ()  # tokens at which a text ends, in addition to the eos token
    model_type: str = GPT2.model_type  # its family
    declared_context: int = 0  # tokens, of which the config may use fewer; 0 if nothing says so
    named_tokens: Mapping[str, str] | None = None  # the tokenizer's special tokens by name; None if no file says so
    generation_config: Mapping[str, object] = MappingProxyType({})  # generation_config.json


def read_source(
    source: str | Path,
    *,
    n_head: int | None = None,
    activation: Activation | None = None,
    tokenizer: Tokenizer | None = None,
    keep: Keep = lambda _config, _name, tensor: tensor,
) -> Source:
    """Read a folder, ``FOLDER@NNNNNN``, a file of weights, or a Hub repository, ``USER/NAME[@REVISION]``.

    ``n_head``, ``activation`` and ``tokenizer`` are for files that lack this information. Each tensor is passed to
    ``keep`` as it is read; by default, all are on the CPU in the dtypes of the file. Raises ``CheckpointError``.
    """
    path, name, step = Path(source), Path(os.path.abspath(source)).name, None
    if os.path.isfile(path):
        return read_file(path, n_head, activation, tokenizer, keep)
    if not os.path.isdir(path):
        if snapshot := SNAPSHOT.fullmatch(str(source)):
            path, step = Path(snapshot[1]), snapshot[2]
        elif HUB_ID.fullmatch(str(source)):
            path, name = download(str(source)), str(source)
        if not os.path.lexists(path):
            raise CheckpointError(path, "no such file or folder", SOURCES)
    return read_folder(path, name, step, tokenizer, keep)


def read_folder(folder: Path, name: str, step: str | None, tokenizer: Tokenizer | None, keep: Keep) -> Source:
    """A checkpoint folder, or its training snapshot after ``step``."""
    if readable(str(folder)) != str(folder):
        raise CheckpointError(folder, "a name that is not UTF-8", "one that is")  # safetensors cannot open it
    before = file_versions(folder)
    config, bos, ends, model_type, declared_context = read_config(folder)
    tokenizer = tokenizer or read_tokenizer(folder, config.vocab_size)
    if tokenizer.vocab_size > config.vocab_size:
        tokenizer.n_rows = config.vocab_size
        beyond = sum(bool(tokenizer.token_bytes(i)) for i in range(config.vocab_size, tokenizer.vocab_size))
        log.warning("%s: the model has no row for %s; prompts with one are refused", name, counted(beyond, "token"))
    paths = weight_files(folder) if step is None else [folder / SNAPSHOTS / f"{step}.safetensors"]
    check_memory(folder, paths)
    if paths[0].suffix in SUFFIXES:
        log.warning("%s: weights in a pickle; `python -m model.checkpoint convert` writes them as safetensors", name)
    state = read_weights(paths, FAMILIES[model_type], config, parameter_shapes(config), partial(keep, config), folder)
    if config.tie_word_embeddings and "lm_head.weight" in state:
        log.warning(
            "%s: config.json ties the output head to the token embeddings, but a different one is stored and used", name
        )
        config = replace(config, tie_word_embeddings=False)
    sha256 = file_hash(paths, folder)
    if file_versions(folder) != before:  # the weights may belong to another config or vocabulary
        raise CheckpointError(
            folder, "files replaced while they were read", "a checkpoint that is not being written: load it again"
        )
    generation, named = read_generation_config(folder), read_named_tokens(folder, tokenizer, model_type)
    ends = (*ends, *read_end_ids(folder, generation, named, tokenizer, config.vocab_size))
    bos = bos if bos is not None and tokenizer.token_bytes(bos) else None
    ends = tuple(token for token in dict.fromkeys(ends) if tokenizer.token_bytes(token))
    eos = ends[0] if ends else None
    template = read_chat_template(folder)
    return Source(
        name,
        config,
        tokenizer,
        bos,
        eos,
        state,
        sha256,
        template,
        ends[1:],
        model_type,
        declared_context,
        named,
        generation,
    )


def read_file(
    path: Path, n_head: int | None, activation: Activation | None, tokenizer: Tokenizer | None, keep: Keep
) -> Source:
    """A checkpoint of nanoGPT, or weights of the book's model. Missing information must be given as arguments."""
    if path.suffix in PICKLES:
        expected = f"the file of the weights, and {convert_with('--alphabet')} with {ALPHABET}"
        raise CheckpointError(path, "a pickle, which is never opened", expected)
    folder = Path(os.path.realpath(path)).parent  # the user named the file, so a link may lead anywhere
    check_memory(path, [path])
    content = read_pickled(path, folder) if path.suffix in SUFFIXES else read_safetensors(path, folder)
    arguments = content.get("model_args") if isinstance(content.get("model"), dict) else None
    stored = content.get("model") if arguments is not None else content.get("model_state_dict", content)
    if not isinstance(stored, dict) or not all(isinstance(tensor, Tensor) for tensor in stored.values()):
        raise CheckpointError(path, "values that are not tensors", "the weights of a GPT-2-shaped model")
    with checkpoint_errors(path, "the weights of a GPT-2-shaped model"):
        named = unwrapped(stored)
        book = is_book(named)
        state = from_book(named) if book else from_nanogpt(named)
        heads = number_of_heads(path, arguments, n_head)
        config = config_of(state, heads, activation or ("gelu_new" if book else "gelu"))
        state = complete(state, config, parameter_shapes(config), partial(keep, config))
    if tokenizer is None:
        if not has_tokenizer(path.parent):
            raise no_vocabulary(path)
        tokenizer = read_tokenizer(path.parent)
    check_tokenizer(path, tokenizer, config)
    end = tokenizer.special_tokens.get(END_OF_TEXT)
    return Source(path.parent.name or path.stem, config, tokenizer, end, end, state, file_hash([path], folder))


def no_vocabulary(path: Path) -> CheckpointError:
    """The error for weights without a vocabulary; nanoGPT keeps its alphabet in a pickle."""
    if not os.path.isfile(path.parent / NANOGPT_META):
        return CheckpointError(path, "no vocabulary in it or next to it", convert_with("--alphabet or --tokenizer"))
    found = f"no vocabulary but {NANOGPT_META} next to it, which is a pickle and is never opened"
    return CheckpointError(path, found, f"{convert_with('--alphabet')} with {ALPHABET}")


def number_of_heads(path: Path, arguments: object, given: int | None) -> int:
    """The number of heads: from nanoGPT's ``model_args``, or the ``given`` one. Raises ``CheckpointError``."""
    stored = arguments.get("n_head") if isinstance(arguments, Mapping) else None
    if stored is None and given is None:
        raise CheckpointError(path, "no number of heads, which the weights do not show", convert_with("--n-head"))
    if stored is not None and given not in (None, stored):
        raise CheckpointError(path, f"n_head {stored}", f"the {given} of --n-head, or none given")
    return cast(int, given if stored is None else stored)  # the config checks that it is an integer


def convert_with(flags: str) -> str:
    return f"{flags}: `python -m model.checkpoint convert SOURCE FOLDER {flags.split()[0]} ...`"


def read_safetensors(path: Path, folder: Path) -> dict[str, object]:
    try:
        return dict(load_file(locate(path, SAFETENSORS, folder)))
    except (SafetensorError, OSError, ValueError) as error:
        expected = f"a safetensors file, or one of torch ({', '.join(SUFFIXES)})"
        raise CheckpointError(path, f"invalid safetensors ({error})", expected) from None


def check_tokenizer(path: Path, tokenizer: Tokenizer, config: GPTConfig) -> None:
    """Raise ``CheckpointError`` unless a model without a config has a row for every token, and one for each character.

    There, unlike in a folder, the vocabulary may be another model's.
    """
    rows, tokens = config.vocab_size, tokenizer.vocab_size
    if tokens > rows:
        raise CheckpointError(path, f"token id {tokens - 1}", f"ids below vocab_size {rows}")
    padded = -(-tokens // PADDED_TO) * PADDED_TO
    if isinstance(tokenizer, CharTokenizer) and rows not in (tokens, padded):
        raise CheckpointError(path, f"{rows} tokens in the model", f"{tokens}, the size of the alphabet given")


def parameter_shapes(config: GPTConfig) -> dict[str, torch.Size]:
    """The shape of every weight of a GPT, without allocating one."""
    return {name: tensor.shape for name, tensor in gpt_on_meta(config).state_dict().items()}


def file_versions(folder: Path) -> list[tuple[int, int]]:
    """Inode and modification time of the config and the vocabulary, which change if either is replaced."""
    paths = (folder / name for name in (CONFIG, TOKENIZER))
    stats = (os.stat(path) for path in paths if os.path.isfile(path))
    return [(stat.st_ino, stat.st_mtime_ns) for stat in stats]
