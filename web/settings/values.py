"""Reading the values of flags and variables; one that cannot be used is an ``ArgumentTypeError`` that says why."""

import argparse
import re
from pathlib import Path

LOG_LEVELS = ("debug", "info", "warning", "error", "critical")
MAX_KEY_BYTES = 4_096
HOST = re.compile(r"\*|(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", re.ASCII)
ORIGIN = re.compile(r"https?://[A-Za-z0-9.-]+(:\d{1,5})?|https?://\[[0-9A-Fa-f:]+\](:\d{1,5})?", re.ASCII)


def read_folder(text: str) -> Path:
    return Path(text).expanduser()


def read_dtype(text: str) -> str:
    if text not in ("auto", "float32", "bfloat16", "int8"):
        raise argparse.ArgumentTypeError(f"dtype must be auto, float32, bfloat16 or int8, found {text!r}")
    return text


def read_port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 65_535:
        raise argparse.ArgumentTypeError(f"a port must be a number from 1 to 65535, found {text!r}")
    return int(text)


def read_count(least: int, text: str) -> int:
    if not text.isascii() or not text.isdigit() or not least <= int(text) <= 10**9:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least {least}, found {text!r}")
    return int(text)


def read_bool(text: str) -> bool:
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("0", "false", "no", "off"):
        return False
    raise argparse.ArgumentTypeError(f"expected true or false, found {text!r}")


def read_key(text: str) -> str:
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise argparse.ArgumentTypeError("a key must be printable ASCII without spaces, and not empty")
    return text


def read_names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def read_hosts(text: str) -> tuple[str, ...]:
    names = tuple(read_names(text))
    for name in names:
        if not HOST.fullmatch(name):
            found = f"expected names such as example.org or *.example.org without a port, or *; found {name!r}"
            raise argparse.ArgumentTypeError(found)
    return names


def read_key_file(path: Path) -> str:
    """The key in a file, without the line's end."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_KEY_BYTES + 1)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{path} cannot be read ({error.strerror or error})") from None
    if len(content) > MAX_KEY_BYTES:
        raise argparse.ArgumentTypeError(f"{path} has more than {MAX_KEY_BYTES:,} bytes")
    try:
        return read_key(content.decode("ascii", "replace").strip())
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{path}: {error}") from None


def read_origins(text: str) -> tuple[str, ...]:
    """Origins as browsers send them, in lower case and without a path."""
    origins = tuple(name.lower().removesuffix("/") for name in read_names(text))
    for origin in origins:
        if origin != "*" and not ORIGIN.fullmatch(origin):
            raise argparse.ArgumentTypeError(f"an origin is https://NAME, http://NAME:PORT or *, found {origin!r}")
    return origins


def read_level(text: str) -> str:
    if text.lower() not in LOG_LEVELS:
        raise argparse.ArgumentTypeError(f"expected one of {', '.join(LOG_LEVELS)}, found {text!r}")
    return text.lower()
