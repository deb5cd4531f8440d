"""The Use tab: how a program calls what the page does, with this page's own address in every example."""

import json
import re

import gradio as gr

from .workspace import Parts

# The address comes from the visitor's browser: nothing in it may end the code it is put into.
ADDRESS = re.compile(r"https?://[\w.:\[\]~/-]{1,200}", re.ASCII)
DEFAULT_ADDRESS = "http://127.0.0.1:7860"
ADDRESS_SCRIPT = "() => new URL('.', document.baseURI).href"

TEXT = """
### Is it up?
`200` when models are served, `503` while they load.
```bash
curl {address}/health
```

### Write from Python
```bash
pip install gradio_client
```
```python
from gradio_client import Client

client = Client("{address}"{client_key})
for text in client.submit({prompt}, model={model}, max_new_tokens=50, temperature=0.8, seed=1, api_name="/generate"):
    print(text, end="\\n---\\n")
```

### Attention weights from Python
`attention[query][key]` of one head: how much each token (query) looks at each token (key).
```python
from gradio_client import Client

client = Client("{address}"{client_key})
result = client.predict({prompt}, model={model}, layer=0, head=0, api_name="/attention")
print(result["tokens"])
print(result["attention"][-1])
```

### Both with curl
A call has two parts: `POST` gives an event id, `GET` streams its results. What is left out takes its default.
```bash
id=$(curl -s {address}/gradio_api/call/v2/generate {curl_key}-H 'Content-Type: application/json' \\
  -d '{generate}' | cut -d'"' -f4)
curl -N {curl_key}{address}/gradio_api/call/generate/$id
```
```bash
id=$(curl -s {address}/gradio_api/call/v2/attention {curl_key}-H 'Content-Type: application/json' \\
  -d '{attention}' | cut -d'"' -f4)
curl -N {curl_key}{address}/gradio_api/call/attention/$id
```
"""
KEY_NOTE = "\nThis server asks for an API key: `export HEADSCOPE_API_KEY=...` before you run the examples.\n"


def use_tab(parts: Parts, demo: gr.Blocks, with_key: bool) -> None:
    """Build the tab's content; the examples take the page's address when it opens."""
    text = gr.Markdown(examples(parts, DEFAULT_ADDRESS, with_key), elem_id="hs-use")
    address = gr.Textbox(visible=False)

    async def show(found: str) -> str:
        await parts.shelf.wait()
        return examples(parts, found, with_key)

    demo.load(show, address, text, js=ADDRESS_SCRIPT, show_progress="hidden", api_visibility="private")


def examples(parts: Parts, address: str, with_key: bool) -> str:
    """Every example as Markdown, for one address."""
    address = address.rstrip("/") if isinstance(address, str) and ADDRESS.fullmatch(address) else DEFAULT_ADDRESS
    name = next(iter(parts.shelf.models), None)
    opening = parts.openings.made.get(name or "")
    prompt = {"prompt": opening.settings["prompt"] if opening else "ROMEO:"}
    note = KEY_NOTE if with_key else ""
    text = TEXT.format(
        address=address,
        prompt=json.dumps(prompt["prompt"]),
        model=json.dumps(name) if name else "None",
        generate=json.dumps(prompt | {"max_new_tokens": 50, "seed": 1}),
        attention=json.dumps(prompt | {"layer": 0, "head": 0}),
        client_key=', headers={"Authorization": "Bearer " + os.environ["HEADSCOPE_API_KEY"]}' if with_key else "",
        curl_key='-H "Authorization: Bearer $HEADSCOPE_API_KEY" ' if with_key else "",
    )
    return note + (text.replace("from gradio_client", "import os\n\nfrom gradio_client") if with_key else text)
