"""The way most demos are written: a generator behind Gradio's queue, one request at a time.

python -m bench.plain_demo FOLDER PORT
"""

import sys
from collections.abc import Iterator

import gradio as gr

import model

loaded = model.load(sys.argv[1])
model.choose_threads(loaded.gpt)


def write(prompt: str, max_new_tokens: float) -> Iterator[str]:
    text = ""
    for step in loaded.generate(prompt, int(max_new_tokens), temperature=0):
        text += step.text
        yield text


if __name__ == "__main__":
    demo = gr.Interface(write, [gr.Textbox(), gr.Number()], gr.Textbox(), api_name="write")
    demo.launch(server_port=int(sys.argv[2]))
