"""HTML files that draw a text with the page's own modules, and need no server, no network and no model.

A file holds the modules (``bundle.py``) and what the page would request from its server (``drawing.py``). Both are read
by ``web/js/look/saved/``.
"""

import html
import json
import sys
from typing import Any

from torch import Tensor, uint8

from . import bundle

FRAME_HEIGHT = 680  # pixels, in a notebook
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
NO_VIEW = '<script type="application/json" id="hs-saved-view">null</script>'  # the page puts its own view here
# Unpacks the modules and runs them; they unpack the numbers with the same function.
START = """
globalThis.unpack = async (text) => {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
};
(async () => {
  const viewer = JSON.parse(new TextDecoder().decode(await unpack(document.getElementById("hs-viewer").textContent)));
  for (const tag of ["style", "script"]) {
    document.head.append(Object.assign(document.createElement(tag), { textContent: viewer[tag] }));
  }
})().catch((error) => { document.querySelector(".headscope").textContent = "This file could not be drawn: " + error; });
"""


def document(title: str, content: dict[str, Any]) -> str:
    """An HTML file that draws ``content``, a ``SavedText`` of ``web/js/types.d.ts``."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="generator" content="Headscope">'
        f'<title>{html.escape(title)}</title></head><body class="hs-saved-page">'
        '<div class="headscope"><p>Loading ...</p></div>'
        f'<script type="application/json" id="hs-saved">{as_script_data(content)}</script>'
        f"{NO_VIEW}"
        f'<script type="text/plain" id="hs-viewer">{bundle.packed()}</script><script>{START}</script></body></html>\n'
    )


def page(title: str, body: str) -> str:
    """An HTML file that shows ``body``, which is HTML without a script."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="color-scheme" content="light dark">'
        f'<title>{html.escape(title)}</title></head><body style="font: 14px system-ui">{body}</body></html>\n'
    )


def in_frame(source: str) -> str:
    """A document in a frame that may run its own script and save files, and nothing else."""
    style = f"width: 100%; height: {FRAME_HEIGHT}px; border: 0; resize: vertical"
    return f'<iframe sandbox="allow-scripts allow-downloads" style="{style}" srcdoc="{html.escape(source)}"></iframe>'


def display(markup: str, text: str) -> None:
    """Show HTML, or ``text`` where there is none, in the cell that is running. Raises ``RuntimeError`` elsewhere."""
    shell = sys.modules.get("IPython")
    if shell is None or shell.get_ipython() is None:
        raise RuntimeError("show() draws in a notebook; to_html(path) writes a file that any browser opens")
    shell.display.display({"text/html": markup, "text/plain": text}, raw=True)


def pack_numbers(numbers: Tensor) -> str:
    """Numbers as text, little-endian: all first bytes, then all second bytes and so on, which compresses better."""
    planes = numbers.contiguous().view(-1).view(uint8).view(-1, numbers.element_size()).t().contiguous()
    return bundle.pack(planes.numpy().tobytes())


def as_script_data(value: object) -> str:
    """JSON for an element that ends at "</script", safe for any texts."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
