"""Find a text that a checkpoint could open with: ``python -m web.page.find_opening FOLDER [--write N]``.

In such a text a word recurs: a copying head looks back at its first occurrence, and it is the next token. The model
writes the texts itself, and each is cut after that token.
"""

import argparse
import json
import sys
from pathlib import Path

import torch

import model
from model import CheckpointError, LoadedModel, PromptError
from model.lens.head_roles import copying_scores, sampled_tokens
from model.lens.opening import CopiedToken, copied_tokens

from ..runs.openings import DECLARED, MAX_LABEL, OPENING_TEMPERATURE, DeclaredOpening, opening_prompt

MIN_PROBABILITY = 0.5  # of the token that is copied
MAX_CANDIDATES = 12


def find(
    loaded: LoadedModel, prompt: str, seeds: int, n_tokens: int, any_head: bool
) -> list[tuple[CopiedToken, DeclaredOpening, str]]:
    """What was found, the clearest first: where, as an opening, and its text."""
    ids = loaded.parse_prompt(prompt)
    config = loaded.config
    copying = torch.ones(config.n_layer, config.n_head)
    if not any_head:
        copying = copying_scores(loaded.gpt, sampled_tokens(loaded))
    candidates = []
    for seed in range(1, seeds + 1):
        steps = loaded.generate(ids, n_tokens, temperature=OPENING_TEMPERATURE, seed=seed)
        text = ids + [step.token_id for step in steps if step.token_id not in loaded.end_token_ids]
        trace = loaded.trace_with(loaded.gpt, text)
        texts = [token.text for token in trace.tokens]
        for copied in copied_tokens(trace.attention, trace.logits, text, copying):
            end = copied.query + 2
            shown = (texts[copied.key], texts[copied.query])
            is_word = all(token.strip().isalnum() for token in shown)
            if end <= len(ids) or copied.probability < MIN_PROBABILITY or not is_word:
                continue
            opening = DeclaredOpening(prompt=prompt, tokens=end - len(ids), head=list(copied.head), seed=seed, label="")
            candidates.append((copied, opening, "".join(texts[:end])))
    return sorted(candidates, key=lambda each: each[0].weight * each[0].probability, reverse=True)


def main(arguments: list[str] | None = None) -> int:
    about = (__doc__ or "").partition("\n\n")[2]
    parser = argparse.ArgumentParser(prog="python -m web.page.find_opening", description=about)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the checkpoint folder")
    parser.add_argument("--prompt", help="what the texts begin with; by default one that the model knows")
    parser.add_argument("--seeds", type=int, default=20, help="number of texts to write")
    parser.add_argument("--tokens", type=int, default=80, help="maximum number of tokens to write for each")
    parser.add_argument(
        "--any-head", action="store_true", help="also consider heads that do not copy what they look at"
    )
    parser.add_argument("--write", type=int, metavar="N", help=f"declare text N of the list in {DECLARED}")
    parser.add_argument("--label", default="", help=f'what to call it under "try", at most {MAX_LABEL} characters')
    given = parser.parse_args(arguments)
    try:
        loaded = model.load(given.folder, device="cpu", dtype="float32")
        prompt = opening_prompt(loaded)[0] if given.prompt is None else given.prompt
        candidates = find(loaded, prompt, given.seeds, given.tokens, given.any_head)[:MAX_CANDIDATES]
    except (CheckpointError, PromptError) as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    for n, (copied, _, text) in enumerate(candidates, start=1):
        layer, head = copied.head
        print(f"{n:2}  weight {copied.weight:.2f}  probability {copied.probability:.2f}  L{layer} H{head}  {text!r}")
    if not candidates:
        print("No such text was found: try another --prompt, more --seeds, or --any-head.")
    if given.write is None or not candidates:
        return 0
    if not 1 <= given.write <= len(candidates) or len(given.label) > MAX_LABEL:
        parser.exit(2, f"{parser.prog}: --write takes 1 to {len(candidates)}, --label at most {MAX_LABEL} characters\n")
    declared = candidates[given.write - 1][1].model_copy(update={"label": given.label})
    (given.folder / DECLARED).write_text(
        json.dumps(declared.model_dump(), ensure_ascii=False, indent=2) + "\n", "utf-8"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
