"""Train a GPT on a text file: ``python -m model.train --data FILE --tokenizer char|bpe --out FOLDER``.

The folder becomes a checkpoint like any other. Ctrl-C and SIGTERM save the state and exit; ``--resume`` continues from
there as if the run had never stopped.
"""

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

from safetensors import SafetensorError

from ..checkpoint.folder_format import WEIGHTS
from ..checkpoint.write import check_writable
from ..errors import CheckpointError
from .settings import TrainSettings, add_flags
from .state import STATE_FILE, is_finished, saved_progress
from .trainer import Trainer


def parse_settings(arguments: argparse.Namespace) -> TrainSettings:
    """The settings of a new run, or of the run to resume. Raises ``ValueError`` if a flag contradicts the latter."""
    given = {k: v for k, v in vars(arguments).items() if k not in ("out", "resume")}
    if not arguments.resume:
        if not given.get("data"):
            raise ValueError("--data FILE is required: the text to train on")
        if (arguments.out / STATE_FILE).exists():
            message = (
                f"{arguments.out} already contains {STATE_FILE}: add --resume to continue, or choose another --out"
            )
            raise ValueError(message)
        if (arguments.out / WEIGHTS).exists():
            raise ValueError(f"{arguments.out} already contains {WEIGHTS}: choose another --out")
        return TrainSettings(**given)
    if not (arguments.out / STATE_FILE).exists():
        why = "has finished" if is_finished(arguments.out) else f"left no {STATE_FILE}"
        raise ValueError(f"the run in {arguments.out} {why}, so there is nothing to resume: choose another --out")
    saved = asdict(TrainSettings()) | saved_progress(arguments.out)["settings"]
    for name, value in given.items():
        if name not in ("data", "validation", "device") and saved[name] != value:
            raise ValueError(f"--{name.replace('_', '-')} {value}: the run to resume was started with {saved[name]}")
    return TrainSettings(**saved | given)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m model.train", description="Train a GPT on a text file.")
    parser.add_argument("--out", type=Path, required=True, help="folder to write the checkpoint to")
    parser.add_argument("--resume", action="store_true", help="continue a run into the same folder that was stopped")
    add_flags(parser)
    parsed = parser.parse_args(arguments)
    try:
        check_writable(parsed.out)
        trainer = Trainer(parse_settings(parsed), parsed.out, resume=parsed.resume)
        finished = trainer.run()
    except (ValueError, CheckpointError) as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    except (OSError, SafetensorError) as error:  # a full disk can raise either
        parser.exit(2, f"{parser.prog}: {error} (earlier saves in {parsed.out} are intact)\n")
    progress = trainer.progress
    if finished:
        print(f"{parsed.out}: {progress['best']:.4f} nats per token on the whole validation split")
    else:
        print(f"stopped after step {progress['step']} and saved; run the same command with --resume to continue")
    return 0


if __name__ == "__main__":
    sys.exit(main())
