"""Draw a text as an HTML file: ``python -m model.view FOLDER "text" out.html``."""

import argparse
import sys
from pathlib import Path

from ..errors import CheckpointError, InputError
from ..loaded import load


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog=f"python -m {__package__}",
        description="Write an HTML file that shows how every head of a model reads a text, in any browser, offline.",
    )
    parser.add_argument("model", help="a checkpoint folder, or a repository on the Hub")
    parser.add_argument("text", help="the text to read")
    parser.add_argument("file", type=Path, help="the file to write")
    parser.add_argument("--write", type=int, default=0, metavar="N", help="let the model write N more tokens first")
    parser.add_argument("--seed", type=int, default=0, help="for writing (default: %(default)s)")
    parser.add_argument("--exact", action="store_true", help="store float32 weights instead of half precision")
    chosen = parser.parse_args(arguments)
    try:
        loaded = load(chosen.model)
        if chosen.write:
            written = loaded.generate(chosen.text, chosen.write, seed=chosen.seed, temperature=0.8)
            written.to_html(chosen.file, exact=chosen.exact)
        else:
            loaded.trace(chosen.text).to_html(chosen.file, exact=chosen.exact)
    except (CheckpointError, InputError, OSError) as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    print(f"{chosen.file}: {chosen.file.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
