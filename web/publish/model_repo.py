"""A checkpoint folder as a model repository."""

from pathlib import Path

from huggingface_hub import ModelCard

import model
from model.checkpoint.files import read_text
from model.checkpoint.gpt2_format import CONFIG, TOKENIZER

from .folder import files_of, load_folder
from .plan import CannotPublish, Plan

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
    """The files of a checkpoint that others need, and its card. Raises ``CannotPublish`` if it cannot be loaded."""
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
    except Exception as error:  # YAML's and the Hub's
        reason = str(error).splitlines()[0]
        raise CannotPublish(f"{path}: the front matter of the card cannot be read ({reason}).") from None
    return text


def new_card(loaded: model.LoadedModel, repo_id: str) -> str:
    """A card for a folder without one. It names no licence: only the owner knows it."""
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
