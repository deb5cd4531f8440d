"""Write a model as a checkpoint folder or a GGUF file: ``python -m model.checkpoint convert``, ``... gguf``."""

import argparse
import sys
from pathlib import Path
from typing import get_args

from safetensors import SafetensorError

from ..config import Activation
from ..errors import CheckpointError
from ..tokenizer import Tokenizer
from .gguf import write_gguf
from .source import read_source
from .vocabulary import read_alphabet, read_tokenizer
from .write import check_writable, write_checkpoint

EPILOG = """\
SOURCE is a checkpoint folder, a Hub repository (USER/NAME or USER/NAME@REVISION), nanoGPT's ckpt.pt, or the weights of
the GPTModel in "Build a Large Language Model From Scratch" (.pth or .safetensors). Pickles are read with
weights_only=True: no code in them is executed.
"""


def convert(
    source: str,
    folder: Path,
    *,
    n_head: int | None = None,
    activation: Activation | None = None,
    tokenizer: Tokenizer | None = None,
) -> str:
    """Write ``source`` as a checkpoint folder and return a line that describes it. Raises ``CheckpointError``.

    Raises ``ValueError`` if nothing can be written to ``folder``, or if it is not empty.
    """
    check_writable(folder)
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty: choose another folder")
    checkpoint = read_source(source, n_head=n_head, activation=activation, tokenizer=tokenizer)
    write_checkpoint(
        folder,
        checkpoint.config,
        checkpoint.state,
        checkpoint.tokenizer,
        bos_token_id=checkpoint.bos_token_id,
        eos_token_id=checkpoint.eos_token_id,
        chat_template=checkpoint.chat_template,
        other_end_ids=checkpoint.other_end_ids,
        named_tokens=checkpoint.named_tokens,
        generation_config=checkpoint.generation_config,
    )
    config = checkpoint.config
    return (
        f"{folder}: {config.n_parameters:,} weights, {config.n_layer} layers of {config.n_head} heads, "
        f"{config.vocab_size:,} tokens, context {config.context_length:,}"
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m model.checkpoint", description="Tools for checkpoints.")
    commands = parser.add_subparsers(dest="command", required=True)
    description = "Write any GPT-2-shaped model as a checkpoint folder."
    raw = argparse.RawDescriptionHelpFormatter
    command = commands.add_parser("convert", description=description, epilog=EPILOG, formatter_class=raw)
    command.add_argument("source", metavar="SOURCE", help="what to convert; see below")
    command.add_argument("folder", metavar="FOLDER", type=Path, help="the checkpoint folder to write")
    command.add_argument("--n-head", type=int, metavar="N", help="number of heads, for sources that do not store it")
    activations = get_args(Activation)
    text = "exact GELU, gelu (the default for nanoGPT), or its tanh form, gelu_new (the default for the book)"
    command.add_argument("--activation", choices=activations, help=text)
    vocabulary = command.add_mutually_exclusive_group()
    text = "characters of the vocabulary: a JSON list in the order of their ids, or the text the model was trained on"
    vocabulary.add_argument("--alphabet", type=Path, metavar="FILE", help=text)
    text = "tokenizer.json, or a folder with one or with GPT-2's vocab.json and merges.txt"
    vocabulary.add_argument("--tokenizer", type=Path, metavar="FILE_OR_FOLDER", help=text)
    description = (
        "Write a GPT-2 or a Llama with a byte-level vocabulary as a GGUF file, for llama.cpp. Needs the package gguf."
    )
    command = commands.add_parser("gguf", description=description)
    command.add_argument("source", metavar="FOLDER", help="a checkpoint folder, or a Hub repository")
    command.add_argument("path", metavar="FILE", type=Path, help="the file to write")
    given = parser.parse_args(arguments)
    try:
        if given.command == "gguf":
            print(write_gguf(given.source, given.path))
            return 0
        tokenizer: Tokenizer | None = None
        if given.alphabet:
            tokenizer = read_alphabet(given.alphabet)
        elif given.tokenizer:
            tokenizer = read_tokenizer(given.tokenizer)
        print(
            convert(given.source, given.folder, n_head=given.n_head, activation=given.activation, tokenizer=tokenizer)
        )
    except (CheckpointError, ValueError, OSError, SafetensorError) as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
