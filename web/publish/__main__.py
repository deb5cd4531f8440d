"""Publish on the Hugging Face Hub: ``python -m web.publish model FOLDER --repo USER/NAME``, or ``space --repo ...``."""

import argparse
import sys
from pathlib import Path

from .model_repo import model_plan
from .plan import CannotPublish, Plan, upload
from .space_repo import HARDWARE, TAKEN, space_plan


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m web.publish", description="Publish on the Hugging Face Hub.")
    kinds = parser.add_subparsers(dest="kind", required=True)
    as_model = kinds.add_parser("model", help="a checkpoint folder as a model")
    as_model.add_argument("folder", type=Path, metavar="FOLDER", help="the checkpoint folder")
    as_space = kinds.add_parser("space", help="this app as a Space")
    text = f"what to serve: {TAKEN}; everything in checkpoints/ by default"
    as_space.add_argument("--checkpoint", nargs="+", default=[], metavar="NAME_OR_FOLDER_OR_HUB_ID", help=text)
    text = f"one of {', '.join(HARDWARE)}; cpu-basic by default, also for a Space that exists"
    as_space.add_argument("--hardware", default="cpu-basic", choices=HARDWARE, metavar="HARDWARE", help=text)
    for command in (as_model, as_space):
        command.add_argument("--repo", required=True, metavar="USER/NAME", help="the repository; created if missing")
        command.add_argument("--private", action="store_true", help="make a new repository private")
        command.add_argument("--dry-run", action="store_true", help="only show what would be uploaded")
    given = parser.parse_args(arguments)
    try:
        plan = plan_of(given)
        print(plan.describe())
        if given.dry_run:
            print("\nNothing was uploaded.")
        else:
            print(f"\nPublished: {upload(plan, given.private)}")
    except CannotPublish as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    return 0


def plan_of(given: argparse.Namespace) -> Plan:
    if given.kind == "model":
        return model_plan(given.folder, given.repo)
    return space_plan(given.repo, given.checkpoint, given.hardware)


if __name__ == "__main__":
    sys.exit(main())
