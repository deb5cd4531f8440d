"""TransformerLens's ``TransformerBridge``, in a process and an environment of its own.

It brings versions of many packages, but shares torch and transformers with us, so that both run the same kernels.
"""

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

from bench.harness import CACHE, ROOT
from bench.peers.folder import run

READY, DONE = "ready", "done"  # lines that the process prints


@contextmanager
def run_with_cache(folder: Path, ids: Tensor, site: str) -> Iterator[tuple[Callable[[], None], Tensor, Tensor]]:
    """A function that runs ``ids`` and keeps the activations of ``site``, and its logits and activations."""
    with TemporaryDirectory() as temporary:
        given, found = Path(temporary, "ids.pt"), Path(temporary, "found.pt")
        torch.save(ids, given)
        command = [python(), "-m", "bench.peers.transformer_bridge", folder, site, given, found]
        pipe = subprocess.PIPE
        with subprocess.Popen(list(map(str, command)), cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:

            def expect(line: str) -> None:
                for said in process.stdout or ():  # the libraries print lines of their own
                    if said.strip() == line:
                        return
                sys.exit("TransformerLens's process has ended")

            def run_once() -> None:
                assert process.stdin
                process.stdin.write("\n")
                process.stdin.flush()
                expect(DONE)

            expect(READY)
            try:
                yield run_once, *torch.load(found)
            finally:
                process.kill()


def python() -> Path:
    """The interpreter of an environment with TransformerLens, installed once."""
    home = CACHE / "transformer-lens"
    found = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not (home / "complete").exists():
        print("installing TransformerLens, once, to compare with it ...", file=sys.stderr)
        venv.create(home, clear=True, with_pip=True)
        own = sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)})
        Path(own, "ours.pth").write_text(sysconfig.get_path("purelib"))  # after its own packages
        run(found, "-m", "pip", "install", "--quiet", "transformer-lens==3.*")
        (home / "complete").touch()
    return found


def main(folder: str, site: str, given: str, found: str) -> None:
    """In the process: one run for each line on stdin."""
    from transformer_lens.model_bridge import TransformerBridge
    from transformers import AutoModelForCausalLM, AutoTokenizer

    gpt = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    bridge = TransformerBridge.boot_transformers(
        folder, hf_model=gpt, tokenizer=AutoTokenizer.from_pretrained(folder), device="cpu"
    )
    ids = torch.load(given)

    @torch.no_grad()
    def run_once() -> tuple[Tensor, Tensor]:
        logits, cache = bridge.run_with_cache(ids, names_filter=[site])
        return logits, cache[site]

    torch.save(run_once(), found)
    print(READY, flush=True)
    for _ in sys.stdin:
        run_once()
        print(DONE, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
