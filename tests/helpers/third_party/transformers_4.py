"""What transformers 4 computes: ``python transformers_4.py TEXT FOLDER ...``, in an environment with it.

Writes ``FOLDER.safetensors`` with the ids of the text, its logits and attention weights, and a greedy continuation.
"""

import sys

if __name__ == "__main__":
    import torch
    import transformers
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    assert transformers.__version__.startswith("4."), transformers.__version__
    text, *folders = sys.argv[1:]
    for folder in folders:
        gpt = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
        read = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
        with torch.inference_mode():
            found = gpt(**read, output_attentions=True)
            written = gpt.generate(**read, max_new_tokens=8, do_sample=False)
        tensors = {
            "ids": read["input_ids"][0],
            "logits": found.logits[0].float(),
            "attention": torch.cat(found.attentions).float(),
            "written": written[0, read["input_ids"].shape[1] :],
        }
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, f"{folder}.safetensors")
