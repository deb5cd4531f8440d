"""Every flag, environment variable and limit, in one place."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PREFIX = "HEADSCOPE_"
CHECKPOINTS = Path(__file__).resolve().parent.parent / "checkpoints"

# What a visitor may ask for.
MAX_PROMPT_CHARACTERS = 20_000
MAX_BODY_BYTES = 262_144
MAX_NEW_TOKENS = 4_096
MAX_QUEUED = 64  # requests waiting on the page's queue
MAX_WRITERS = 4  # texts written at the same time; the others wait
MAX_RUN_ID = 64  # characters
MAX_API_NUMBERS = 4_000_000  # attention weights in one JSON answer

# What is kept, all visitors together.
MAX_CACHED_BYTES = 16_000_000  # attention weights of runs, the least used dropped first
MAX_RUN_BYTES = 9_000_000  # above, only thumbnails and a few heads of a run are kept, the rest is recomputed
MAX_FRESH_BYTES = 8_000_000  # newest logits of a text while it is written: over half a second of GPT-2's
MAX_READING_BYTES = 4_000_000  # residual streams from which the rest of a run is recomputed, beside the newest
MAX_CACHED_RUNS = 1_000
MAX_SESSIONS = 500  # browser tabs of which Gradio keeps the state

# How the page moves.
UPDATE_SECONDS = 0.08  # between two updates of a text that is being written
OPENING_TOKENS = 120  # written once for each model when the server starts
OPENING_SEED = 1
OPENING_TEMPERATURE = 0.8
OPENING_PROMPTS = ("ROMEO:", "Once upon a time", "The ", "\n")  # the first one that the model can read


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the operator chose. ``checkpoints`` are names under ``checkpoints/``, folders or Hub ids."""

    checkpoints: tuple[str, ...]
    device: str = "auto"
    dtype: str = "auto"
    host: str = "127.0.0.1"
    port: int = 7860
    share: bool = False
    api_key: str | None = None


def read(arguments: Sequence[str], environ: Mapping[str, str]) -> Settings:
    """Settings from the command line, then ``HEADSCOPE_*``, then Gradio's own variables, then the defaults.

    A value that cannot be used is named on stderr and ends the process with status 2.
    """
    description = "A GPT on a web page, with every attention head in view."
    parser = argparse.ArgumentParser(prog="app.py", description=description)

    def flag(name: str, read_value: Callable[[str], Any], default: Any, text: str, **options: Any) -> None:
        variable = PREFIX + name.replace("-", "_").upper()
        if environ.get(variable):
            try:
                default = read_value(environ[variable])
            except (argparse.ArgumentTypeError, ValueError) as error:
                parser.error(f"{variable}: {error}")
        parser.add_argument(f"--{name}", default=default, help=f"{text} [{variable}]", **options)

    flag("device", str, "auto", "auto (cuda where usable, else cpu) or a torch device", type=str)
    flag("dtype", read_dtype, "auto", "auto (float32 below 50 M weights), float32 or bfloat16", type=read_dtype)
    flag("host", str, default_host(environ), "address to listen on", type=str)
    port = environ.get("GRADIO_SERVER_PORT") or "7860"
    flag("port", read_port, port, "port to listen on", type=read_port)
    flag("share", read_bool, False, "open a public gradio.live address as well", action="store_true")
    flag("api-key", read_key, None, "secret that everything but /health then asks for", type=read_key)
    parser.add_argument(
        "--checkpoint",
        nargs="+",
        action="extend",
        metavar="NAME_OR_FOLDER_OR_HUB_ID",
        help=f"names under checkpoints/, folders or Hub ids, all of checkpoints/ by default "
        f"[{PREFIX}CHECKPOINT, with commas]",
    )
    found = parser.parse_args(arguments)
    checkpoints = found.checkpoint or read_names(environ.get(f"{PREFIX}CHECKPOINT", "")) or all_checkpoints()
    return Settings(
        checkpoints=tuple(dict.fromkeys(checkpoints)),
        device=found.device,
        dtype=found.dtype,
        host=found.host,
        port=found.port,
        share=found.share,
        api_key=found.api_key,
    )


def all_checkpoints() -> list[str]:
    """The names of the folders in ``checkpoints/``."""
    folders = CHECKPOINTS.iterdir() if CHECKPOINTS.is_dir() else ()
    return sorted(folder.name for folder in folders if folder.is_dir() and not folder.name.startswith("."))


def default_host(environ: Mapping[str, str]) -> str:
    """Gradio's variable, else every address on a Space, else this machine only."""
    return environ.get("GRADIO_SERVER_NAME") or ("0.0.0.0" if environ.get("SPACE_ID") else "127.0.0.1")


def read_dtype(text: str) -> str:
    if text not in ("auto", "float32", "bfloat16"):
        raise argparse.ArgumentTypeError(f"dtype must be auto, float32 or bfloat16, found {text!r}")
    return text


def read_port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 65_535:
        raise argparse.ArgumentTypeError(f"a port is a number from 1 to 65535, found {text!r}")
    return int(text)


def read_bool(text: str) -> bool:
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("0", "false", "no", "off"):
        return False
    raise argparse.ArgumentTypeError(f"true or false is needed, found {text!r}")


def read_key(text: str) -> str:
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise argparse.ArgumentTypeError("a key is printable ASCII without spaces, and not empty")
    return text


def read_names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
