"""The encoding of links by web/js/lib/link.mjs, in Python."""

import base64
from dataclasses import replace

from model.tokenizer import CharTokenizer
from web.serving.served_models import ServedModels
from web.settings import Settings

from .models import tiny_model
from .server import CHARACTERS, CONTEXT

RANGES = {"temperature": (0, 2), "max_new_tokens": (1, 1024), "top_k": (0, 100), "top_p": (0.05, 1), "min_p": (0, 1)}
LINK_SETTINGS = {"length": "20", "temperature": "0.8", "top_k": "0", "top_p": "1", "min_p": "0", "seed": "-3"}


def encode_ids(ids: list[int]) -> str:
    """Encode like link.mjs."""
    data = bytearray()
    for number in ids:
        while number > 127:
            data.append(128 + number % 128)
            number //= 128
        data.append(number)
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


GOOD_QUERY = {"model": "tiny", "sha256": "a" * 16, "ids": encode_ids([1, 2, 3]), "prompt": "2"}


def served_under(**models: str) -> ServedModels:
    """One small model, served under these names with these hashes."""
    loaded = tiny_model(tokenizer=CharTokenizer.train(CHARACTERS), context_length=CONTEXT)
    served = ServedModels(Settings(checkpoints=()))
    served.shared = {name: replace(loaded, name=name, sha256=sha256) for name, sha256 in models.items()}
    served.ready.set_result(None)
    return served
