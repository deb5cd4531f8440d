"""Every flag and environment variable, and the fixed limits that several parts of the server share."""

import argparse
import os
import re
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from model.checkpoint.load import DTYPES

PREFIX = "HEADSCOPE_"
SECRET_PREFIXES = (PREFIX, "HF_", "HUGGING_FACE_")  # of variables that processes of this server must not see
*FIRST_DTYPES, LAST_DTYPE = DTYPES
DTYPE_NAMES = f"auto, {', '.join(FIRST_DTYPES)} or {LAST_DTYPE}"
LogFormat = Literal["text", "json"]
LOG_LEVELS = ("debug", "info", "warning", "error", "critical")
MIN_KEY_CHARACTERS, MAX_KEY_BYTES = 16, 4_096
HOST = re.compile(r"\*|(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", re.ASCII)
ORIGIN = re.compile(r"https?://[A-Za-z0-9.-]+(:\d{1,5})?|https?://\[[0-9A-Fa-f:]+\](:\d{1,5})?", re.ASCII)
ROOT_PATH = re.compile(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+", re.ASCII)
OWN_PATH = re.compile(  # what the routes begin with, Gradio's too
    "/(assets|config|detokenize|favicon.ico|gradio_api|health|js|key|learn|login|logout|look|manifest.json|metrics|"
    "monitoring|openapi.json|preview.png|pwa_icon|robots.txt|static|svelte|theme.css|tokenize|train|v1|version)(/.*)?"
)
CHECKPOINTS = Path(__file__).resolve().parents[1] / "checkpoints"

MEGABYTE = 1_000_000
LEAST_BATCH = 16  # texts that any model may write at once, unless the operator chooses another number
MAX_RUN_ID = 64  # characters
PIECE_BYTES = 32_768  # of an answer that are sent at a time, so that a slow client leaves little data unsent
NICENESS = 10  # of Ask's threads and of trainings: a tenth of a core while texts are being written, else all cores
UPLOAD_SECONDS = 60  # for a text to train on

# Caches, shared by all visitors. A part of the memory budget is reserved for them; the first two also use what is free.
MIN_RUN_BYTES = 16_000_000  # attention weights of runs
MIN_RUN_PASS_BYTES = 4_000_000  # residual streams from which the rest of a run is recomputed, not counting the newest
MAX_ANSWER_BYTES = 16_000_000  # answers of Ask
MAX_ASK_PASS_BYTES = 16_000_000  # texts that Ask read in float32, not counting the newest
MAX_SNAPSHOT_BYTES = 48_000_000  # weights of snapshots that were opened, not counting the newest
KEPT_BYTES = MIN_RUN_BYTES + MIN_RUN_PASS_BYTES + MAX_ANSWER_BYTES + MAX_ASK_PASS_BYTES + MAX_SNAPSHOT_BYTES


# Parsers of flags and variables. An invalid value raises ``ArgumentTypeError`` with the reason.


def parse_path(text: str) -> Path:
    return Path(text).expanduser()


def parse_dtype(text: str) -> str:
    if text not in ("auto", *DTYPES):
        raise argparse.ArgumentTypeError(f"dtype must be {DTYPE_NAMES}, found {text!r}")
    return text


def parse_port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 65_535:
        raise argparse.ArgumentTypeError(f"a port must be a number from 1 to 65535, found {text!r}")
    return int(text)


def parse_root_path(text: str) -> str:
    """A path without a slash at its end; "" for the root itself."""
    path = text.rstrip("/")
    if path and not ROOT_PATH.fullmatch(path):
        message = f"a root path is / and names of letters, digits, - and _, such as /heads; found {text!r}"
        raise argparse.ArgumentTypeError(message)
    if OWN_PATH.fullmatch(path):
        message = f"a root path cannot begin like this server's own addresses; found {text!r}"
        raise argparse.ArgumentTypeError(message)
    return path


def parse_count(least: int, text: str) -> int:
    if not text.isascii() or not text.isdigit() or not least <= int(text) <= 10**9:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least {least}, found {text!r}")
    return int(text)


def parse_bool(text: str) -> bool:
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("0", "false", "no", "off"):
        return False
    raise argparse.ArgumentTypeError(f"expected true or false, found {text!r}")


def parse_negated(text: str) -> bool:
    return not parse_bool(text)


def parse_key(text: str) -> str:
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise argparse.ArgumentTypeError("a key must consist of one or more printable ASCII characters without spaces")
    return text


def parse_own_key(text: str) -> str:
    """A key that this server asks for: long enough that it cannot be guessed."""
    if len(parse_key(text)) < MIN_KEY_CHARACTERS:
        raise argparse.ArgumentTypeError(f"a key must have at least {MIN_KEY_CHARACTERS} characters, found {len(text)}")
    return text


def parse_names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def parse_hosts(text: str) -> tuple[str, ...]:
    names = tuple(parse_names(text))
    for name in names:
        if not HOST.fullmatch(name):
            message = f"expected names such as example.org or *.example.org without a port, or *; found {name!r}"
            raise argparse.ArgumentTypeError(message)
    return names


def read_key_file(path: Path) -> str:
    """The key in a file, without surrounding whitespace."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_KEY_BYTES + 1)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{path} cannot be read ({error.strerror or error})") from None
    if len(content) > MAX_KEY_BYTES:
        raise argparse.ArgumentTypeError(f"{path} is larger than {MAX_KEY_BYTES:,} bytes")
    try:
        return parse_own_key(content.decode("ascii", "replace").strip())
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{path}: {error}") from None


def parse_origins(text: str) -> tuple[str, ...]:
    """Origins as browsers send them: in lower case and without a path."""
    origins = tuple(name.lower().removesuffix("/") for name in parse_names(text))
    for origin in origins:
        if origin != "*" and not ORIGIN.fullmatch(origin):
            raise argparse.ArgumentTypeError(f"an origin is https://NAME, http://NAME:PORT or *; found {origin!r}")
    return origins


def parse_choice(choices: Sequence[str], text: str) -> str:
    if text.lower() not in choices:
        raise argparse.ArgumentTypeError(f"expected one of {', '.join(choices)}, found {text!r}")
    return text.lower()


class Flag(NamedTuple):
    """A flag of the command line, which an environment variable may set as well."""

    name: str
    field: str  # that it sets
    default: Any
    help: str
    parse: Callable[[str], Any] = str  # raises ``ArgumentTypeError`` with the reason if the value is invalid
    metavar: str | None = None

    @property
    def variable(self) -> str:
        return PREFIX + self.name.replace("-", "_").upper()

    def add_to(self, add: Callable[..., object], environ: Mapping[str, str]) -> None:
        """Raises ``ArgumentTypeError`` or ``ValueError`` if the variable is invalid."""
        text = environ.get(self.variable)
        options: dict[str, Any] = {"type": self.parse, "metavar": self.metavar}
        if self.parse in (parse_bool, parse_negated):
            options = {"action": "store_true" if self.parse is parse_bool else "store_false"}
        elif self.parse is parse_names:
            options = {"nargs": "+", "metavar": self.metavar}
        add(
            f"--{self.name}",
            dest=self.field,
            default=self.parse(text) if text else self.default,
            help=f"{self.help} [{self.variable}]",
            **options,
        )


def flag(default: Any, help: str, parse: Callable[[str], Any] = str, **more: Any) -> Any:
    """A field that a flag sets; ``more`` are other fields of ``Flag``."""
    return field(default=default, metadata={"help": help, "parse": parse, **more})


def limit(default: int, help: str, least: int = 1) -> Any:
    return flag(default, help, partial(parse_count, least))


@dataclass(frozen=True, kw_only=True)
class FixedLimits:
    """The limits that no flag changes; they suit two cores and 16 GB."""

    max_waiting: int = 128  # further texts that may wait: at two texts a second, a minute's worth
    max_new_tokens: int = 4_096  # that a request may ask for per text; a text also ends with the context
    max_choices: int = 32  # texts that a request may ask for (prompts times n); more can come in further requests
    max_stop: int = 16  # stop strings in a request, each of which is looked for after every token
    max_prompt_characters: int = 40_000  # enough for 8,192 tokens of ordinary text
    max_json_weights: int = 4_000_000  # numbers in a JSON response; safetensors, which is for more, has no limit
    max_questions: int = 2  # of Ask computed at once, for all models together: the others take turns
    max_attention_requests: int = 2  # computed at once, for all models together: each may use all cores
    max_scored_steps: int = 16  # of a training on the Hub that are downloaded to score their heads: enough for a curve
    max_waiting_trainings: int = 31  # further trainings: a class of 32 fits, one of which is being trained
    max_training_weights: int = 3_000_000  # of a GPT that a visitor trains: more learn nothing within the time
    max_trained_minutes: int = 60  # for which a trained GPT is kept for its visitor


@dataclass(frozen=True, kw_only=True)
class Limits(FixedLimits):
    """The limits of this server. Those that a flag changes are here; their defaults suit two cores and 16 GB."""

    max_batch: int = limit(0, "texts that a model writes at once; 0: as many as have room, at least 16", least=0)
    max_seconds: int = limit(
        300, "seconds that writing a text may take before it is cut off; questions of Ask have --max-question-seconds"
    )
    max_body_bytes: int = limit(262_144, "bytes in a request body")
    max_question_seconds: int = limit(
        1_800, "seconds that a question of Ask may take; one whose progress shows that it will take longer ends early"
    )
    memory_budget_mb: int = limit(
        768,
        "megabytes that request bodies, responses, files being saved and texts being recorded may take together",
        least=128,
    )
    max_float32_mb: int = limit(
        1_000,
        "megabytes of float32 copies, for Ask, of models served in another precision; a larger copy is kept alone",
    )
    max_steps_mb: int = limit(
        5_000, "megabytes of training steps from the Hub kept on disk; the newest is kept even if it is larger"
    )
    max_connections: int = limit(2_000, "open connections; fewer if the system's limit on file descriptors requires it")
    max_connections_per_address: int = limit(
        256, "open connections per client; 0 for no limit; no effect behind a trusted proxy", least=0
    )
    grace_seconds: int = limit(10, "seconds that running texts and trainings get when the server is stopped", least=0)
    max_trainings: int = limit(1, "GPTs that visitors train at once")
    max_training_seconds: int = limit(180, "seconds that a training may take; large models are stopped early")
    max_training_bytes: int = limit(5_000_000, "bytes of text that a visitor may train on")
    max_training_megabytes: int = limit(2_000, "megabytes of memory that a training process may use")

    @property
    def max_texts(self) -> int:
        """How many texts, active or waiting, every engine has room for."""
        return (self.max_batch or LEAST_BATCH) + self.max_waiting


# What holds in place of a flag that an earlier version had.
REMOVED = {each.name.replace("_", "-"): f"it is fixed at {each.default:,}" for each in fields(FixedLimits)} | {
    "max-reading-seconds": "--max-question-seconds decides",
    "max-traces": f"it is fixed at {FixedLimits.max_attention_requests}",
    "no-bfloat16-products": "--dtype float32 decides",
}


@dataclass(frozen=True)
class BodyLimit:
    """A larger limit for the bodies of one route."""

    max_bytes: int
    budget_factor: int = 2  # bytes counted against the budget per byte of a body: the body and everything made from it


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The operator's choices. ``checkpoints`` are names under ``checkpoints/``, paths or Hub ids."""

    checkpoints: tuple[str, ...]
    device: str = flag("auto", "torch device, or auto: cuda if usable, otherwise cpu")
    dtype: str = flag("auto", f"{DTYPE_NAMES}; auto is float32 below 50 M weights", parse_dtype)
    host: str = flag("127.0.0.1", "address to listen on")
    port: int = flag(7860, "port to listen on", parse_port)
    root_path: str = flag("", "path of a site below which a proxy serves this server, such as /heads", parse_root_path)
    share: bool = flag(False, "also serve at a public gradio.live address", parse_bool)
    trusted_proxies: int = flag(
        0,
        "number of proxies in front of this server whose X-Forwarded-For is trusted; by default 0, but 1 on a "
        "Space and with --share",
        partial(parse_count, 0),
    )
    api_key: str | None = flag(None, "secret of 16 characters or more that all but /health requires", parse_own_key)
    api_key_file: Path | None = flag(None, "file with that secret, to hide it from process lists", parse_path)
    allowed_hosts: tuple[str, ...] = flag(
        (),
        "further host names of this server, such as example.org or *.example.org, or * for all; IP addresses, "
        "localhost and this machine's name always work",
        parse_hosts,
        metavar="HOST[,HOST]",
    )
    allowed_origins: tuple[str, ...] = flag(
        (),
        "origins whose web pages may call this server, such as https://example.org, or * for all (without cookies)",
        parse_origins,
        metavar="ORIGIN[,ORIGIN]",
    )
    access_log: bool = flag(False, "print a line for every request", parse_bool)
    log_level: str = flag("warning", f"one of {', '.join(LOG_LEVELS)}", partial(parse_choice, LOG_LEVELS))
    log_format: LogFormat = flag(
        "text", "text, or json: one object per line", partial(parse_choice, get_args(LogFormat))
    )
    watchdog_seconds: int = flag(
        0,
        "end the process, so that it is restarted, if its event loop is blocked for this long; 0: never",
        partial(parse_count, 0),
    )
    train: bool = flag(True, "do not let visitors train GPTs", parse_negated, name="no-train")
    cache: Path | None = flag(None, "folder that caches computed results", parse_path)
    kernels: bool = flag(True, "write with torch alone, which is slower on a CPU", parse_negated, name="no-kernels")
    dev: bool = flag(False, "load the page's modules one by one instead of joined, to work on them", parse_bool)
    is_space: bool = False  # whether this is a Space, which the Hub shows in a frame
    space_hosts: tuple[str, ...] = ()  # the Space's host names; several if it has a domain of its own
    zero_gpu: bool = False  # whether the page's texts are written on a GPU that is available only in Gradio's events
    engine_urls: tuple[str, ...] = flag(
        (),
        "address of the engine, for all models or for one",
        parse_names,
        name="engine-url",
        metavar="[MODEL=]http://HOST:PORT/v1",
    )
    engine_models: tuple[str, ...] = flag(
        (),
        "the engine's name for the model, if it cannot be found automatically",
        parse_names,
        name="engine-model",
        metavar="[MODEL=]NAME",
    )
    engine_key: str | None = flag(None, "API key for the engine", parse_key)
    limits: Limits = Limits()


def all_checkpoints() -> list[str]:
    """The names of the folders in ``checkpoints/``."""
    folders = CHECKPOINTS.iterdir() if CHECKPOINTS.is_dir() else ()
    return sorted(folder.name for folder in folders if os.path.isdir(folder) and not folder.name.startswith("."))


def default_host(environ: Mapping[str, str]) -> str:
    """Gradio's variable if set; otherwise all interfaces on a Space, and only this machine elsewhere."""
    return environ.get("GRADIO_SERVER_NAME") or ("0.0.0.0" if is_space(environ) else "127.0.0.1")


def without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for a process that handles what visitors send."""
    return {name: value for name, value in environ.items() if not name.startswith(SECRET_PREFIXES)}


def is_space(environ: Mapping[str, str]) -> bool:
    return bool(environ.get("SPACE_ID"))


def is_zero_gpu(environ: Mapping[str, str]) -> bool:
    """Whether this is a Space on ZeroGPU. Training is off there by default, because its CPU is shared as well."""
    # The same test as in the package spaces.
    return is_space(environ) and environ.get("SPACES_ZERO_GPU", "").lower() in ("1", "t", "true")


def default_cache(environ: Mapping[str, str]) -> Path | None:
    """Headscope's folder in the system's cache directory; None for a user without a home directory."""
    try:
        if sys.platform == "win32":
            base = Path(environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        elif sys.platform == "darwin":
            base = Path.home() / "Library" / "Caches"
        else:
            base = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # there is no home directory
        return None
    return base / "headscope"


def flags(environ: Mapping[str, str]) -> list[Flag]:
    """Every flag but ``--checkpoint``. A default that is text is parsed like a value."""
    # On ZeroGPU, a GPU is available only inside Gradio's events, whatever torch reports.
    is_zero = is_zero_gpu(environ)
    defaults: dict[str, Any] = {
        "device": "cpu" if is_zero else "auto",
        "host": default_host(environ),
        "port": environ.get("GRADIO_SERVER_PORT") or "7860",
        "root_path": environ.get("GRADIO_ROOT_PATH", ""),
        "trusted_proxies": None,  # depends on --share, too
        "train": not is_zero,
        "cache": default_cache(environ),
    }
    return [
        Flag(
            field=each.name,
            default=defaults.get(each.name, each.default),
            **{"name": each.name.replace("_", "-"), **each.metadata},
        )
        for each in (*fields(Settings), *fields(Limits))
        if each.metadata
    ]


def parse(arguments: Sequence[str], environ: Mapping[str, str]) -> Settings:
    """Settings from the command line, then ``HEADSCOPE_*``, then Gradio's own variables, then the defaults.

    An invalid value is reported on stderr, and the process exits with status 2.
    """
    description = "A GPT on a web page, with every attention head in view."
    parser = argparse.ArgumentParser(prog="app.py", description=description)
    engine = parser.add_argument_group(
        "another engine",
        "writes the texts instead of this app, which reads along and shows attention; see docs/deployment.md",
    )
    for name, instead in REMOVED.items():
        if PREFIX + name.replace("-", "_").upper() in environ or f"--{name}" in {
            a.partition("=")[0] for a in arguments
        }:
            parser.error(f"--{name} is not a setting: {instead}")
    limits = parser.add_argument_group("limits")
    limit_names = [each.name for each in fields(Limits) if each.metadata]
    for each in flags(environ):
        group = limits if each.field in limit_names else engine if each.name.startswith("engine-") else parser
        try:
            each.add_to(group.add_argument, environ)
        except (argparse.ArgumentTypeError, ValueError) as error:
            parser.error(f"{each.variable}: {error}")
    parser.add_argument(
        "--checkpoint",
        dest="checkpoints",
        nargs="+",
        action="extend",
        metavar="NAME_OR_FOLDER_OR_HUB_ID",
        help="names under checkpoints/, folders, weight files, or Hub ids (USER/NAME@step* for the steps of a "
        f"training); by default everything in checkpoints/ [{PREFIX}CHECKPOINT, separated by commas]",
    )
    values = vars(parser.parse_args(arguments))
    key_file = values["api_key_file"]
    if values["api_key"] and key_file:
        parser.error("--api-key and --api-key-file cannot be used together")
    try:
        values["api_key"] = values["api_key"] if key_file is None else read_key_file(key_file)
    except argparse.ArgumentTypeError as error:
        parser.error(f"--api-key-file: {error}")
    checkpoints = values.pop("checkpoints") or parse_names(environ.get(f"{PREFIX}CHECKPOINT", "")) or all_checkpoints()
    if values["trusted_proxies"] is None:
        values["trusted_proxies"] = 1 if is_space(environ) or values["share"] else 0
    for name in ("engine_urls", "engine_models"):
        values[name] = tuple(values[name])
    return Settings(
        checkpoints=tuple(dict.fromkeys(checkpoints)),
        is_space=is_space(environ),
        space_hosts=tuple(parse_names(environ.get("SPACE_HOST", ""))),
        zero_gpu=is_zero_gpu(environ),
        limits=Limits(**{name: values.pop(name) for name in limit_names}),
        **values,
    )


def check_address(host: str, port: int) -> None:
    """Raise ``OSError`` if the server cannot listen there. The advice in Gradio's own message does not apply here."""
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        raise OSError(f"cannot listen on {host}:{port} ({error.strerror or error})") from None
