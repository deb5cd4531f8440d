"""What chats and social networks show of a link to the page: a title, a sentence and a picture.

For a link to a text, the sentence is its first words, unless the server has a key.
"""

import html
import re
from collections.abc import Mapping
from pathlib import Path

from starlette.datastructures import QueryParams
from starlette.responses import FileResponse
from starlette.routing import Route

from ..serving.served_models import NotServed, ServedModels
from .link import BadLink, decode_ids

TITLE = "Headscope"
SENTENCE = "A GPT on a web page, with every attention head in view."
PICTURE = "preview.png"
FILE = Path(__file__).resolve().parents[2] / "bench" / "readme" / "light.png"
GRADIOS_TAGS = re.compile(rb'<meta\s+(?:property="og:|name="twitter:)[^>]*>\s*')
MAX_TOKENS, MAX_CHARACTERS = 100, 200  # of a text's first words


def with_preview(head: bytes, root: str, query: str, served: ServedModels) -> bytes:
    """The page's head with tags about this page in place of Gradio's. ``root`` is its address without the ``query``."""
    if served.settings.api_key is not None:
        query = ""
    sentence = sentence_about(served, QueryParams(query))
    values = {
        "og:title": TITLE,
        "og:type": "website",
        "og:url": f"{root}?{query}" if query else root,
        "og:description": sentence,
        "og:image": f"{root}{PICTURE}",
    }
    tags = f"<title>{TITLE}</title>" + "".join(
        f'<meta property="{name}" content="{html.escape(value)}">' for name, value in values.items()
    )
    tags += f'<meta name="description" content="{html.escape(sentence)}">'
    tags += '<meta name="twitter:card" content="summary_large_image">'
    # Before the first script, which holds all that Gradio knows of the page: crawlers read only the beginning.
    before, script, after = head.partition(b"<script")
    return GRADIOS_TAGS.sub(b"", before) + tags.encode() + script + after


def sentence_about(served: ServedModels, query: Mapping[str, str]) -> str:
    """The first words of the text that the page's query leads to, or else the page's own sentence."""
    try:
        loaded = served.with_hash(query.get("sha256", ""), query.get("model", ""))
        ids = decode_ids(query.get("ids", ""), loaded.config.context_length + 1)
    except (NotServed, BadLink):
        return SENTENCE
    special = loaded.tokenizer.special_tokens.values()
    text = loaded.tokenizer.decode([i for i in ids[:MAX_TOKENS] if i not in special])
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if len(words) > MAX_CHARACTERS:
        words = words[:MAX_CHARACTERS]
        words = (words.rpartition(" ")[0] or words) + "…"
    elif len(ids) > MAX_TOKENS:
        words = words.rstrip("\ufffd") + "…"
    return words or SENTENCE


def picture_route() -> Route:
    """README's picture of the page."""
    return Route(f"/{PICTURE}", lambda _: FileResponse(FILE, headers={"Cache-Control": "public, max-age=86400"}))
