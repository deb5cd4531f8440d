"""Every flag and environment variable, and the fixed limits that several parts of the server share."""

import argparse
import re
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

PREFIX = "HEADSCOPE_"
SECRET_PREFIXES = (PREFIX, "HF_", "HUGGING_FACE_")  # of variables that processes of this server must not see
LogFormat = Literal["text", "json"]
LOG_LEVELS = ("debug", "info", "warning", "error", "critical")
MAX_KEY_BYTES = 4_096
HOST = re.compile(r"\*|(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", re.ASCII)
ORIGIN = re.compile(r"https?://[A-Za-z0-9.-]+(:\d{1,5})?|https?://\[[0-9A-Fa-f:]+\](:\d{1,5})?", re.ASCII)
CHECKPOINTS = Path(__file__).resolve().parents[1] / "checkpoints"

MAX_RUN_ID = 64  # characters
UPDATE_SECONDS = 0.2  # between updates of a text being written; each takes time away from writing
UPLOAD_SECONDS = 60  # for a text to train on

# Caches, shared by all visitors. A part of the memory budget is reserved for them.
MAX_CACHED_BYTES = 16_000_000  # attention weights of runs; the least recently used are evicted first
MAX_RUN_PASS_BYTES = 4_000_000  # residual streams from which the rest of a run is recomputed, not counting the newest
MAX_ANSWER_BYTES = 16_000_000  # answers of Ask
MAX_ASK_PASS_BYTES = 16_000_000  # texts that Ask read in float32, not counting the newest
MAX_SNAPSHOT_BYTES = 48_000_000  # weights of snapshots that were opened, not counting the newest
KEPT_BYTES = MAX_CACHED_BYTES + MAX_RUN_PASS_BYTES + MAX_ANSWER_BYTES + MAX_ASK_PASS_BYTES + MAX_SNAPSHOT_BYTES


def limit(default: int, text: str, least: int = 1) -> Any:
    return field(default=default, metadata={"text": text, "least": least})


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of this server. Each is a flag; the defaults suit two cores and 16 GB."""

    max_batch: int = limit(16, "texts that a model writes at once")
    max_waiting: int = limit(64, "further texts that may wait; requests beyond that get 429", least=0)
    max_seconds: int = limit(300, "seconds that writing a text may take before it is cut off")
    max_new_tokens: int = limit(4_096, "tokens that a request may ask for per text")
    max_choices: int = limit(32, "texts that a request may ask for (prompts times n)")
    max_stop: int = limit(16, "stop strings in a request")
    max_prompt_characters: int = limit(20_000, "characters in a prompt")
    max_body_bytes: int = limit(262_144, "bytes in a request body")
    max_json_weights: int = limit(
        4_000_000, "attention weights in a JSON response (safetensors has no limit), or numbers about many prompts"
    )
    max_questions: int = limit(2, "questions of Ask computed at once, for all models together")
    max_reading_seconds: int = limit(1_800, "seconds that a question of Ask about a long text may take")
    max_traces: int = limit(2, "attention requests computed at once, for all models together")
    memory_budget_mb: int = limit(
        512, "megabytes that request bodies, responses being sent and texts being recorded may take together", least=128
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
    grace_seconds: int = limit(10, "seconds that running requests get to finish when the server is stopped", least=0)
    max_trainings: int = limit(1, "GPTs that visitors train at once")
    max_waiting_trainings: int = limit(8, "further trainings that may wait", least=0)
    max_training_seconds: int = limit(180, "seconds that a training may take; large models are stopped early")
    max_training_weights: int = limit(3_000_000, "weights of a GPT that a visitor trains")
    max_training_bytes: int = limit(5_000_000, "bytes of text that a visitor may train on")
    max_training_megabytes: int = limit(2_000, "megabytes of memory that a training process may use")
    max_trained_minutes: int = limit(60, "minutes for which a trained GPT is kept for its visitor")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The operator's choices. ``checkpoints`` are names under ``checkpoints/``, paths or Hub ids."""

    checkpoints: tuple[str, ...]
    device: str = "auto"
    dtype: str = "auto"
    host: str = "127.0.0.1"
    port: int = 7860
    share: bool = False
    trusted_proxies: int = 0  # proxies in front of this server, each of which adds to X-Forwarded-For
    api_key: str | None = None
    allowed_hosts: tuple[str, ...] = ()  # further names of this server; "*" for all
    allowed_origins: tuple[str, ...] = ()  # origins whose pages may call this server; "*" for all, without cookies
    access_log: bool = False
    log_level: str = "warning"
    log_format: LogFormat = "text"
    watchdog_seconds: int = 0  # after which a process whose event loop is blocked ends; 0: never
    train: bool = True  # whether visitors may train GPTs of their own
    cache: Path | None = None
    kernels: bool = True  # whether loops compiled for this processor write texts once they are ready
    zero_gpu: bool = False  # whether the page's texts are written on a GPU that is available only in Gradio's events
    engine_urls: tuple[str, ...] = ()  # of engines that write instead of this app: URL, or MODEL=URL
    engine_models: tuple[str, ...] = ()  # the engines' names for the models: NAME, or MODEL=NAME
    engine_key: str | None = None
    limits: Limits = Limits()


# Parsers of flags and variables. An invalid value raises ``ArgumentTypeError`` with the reason.


def parse_path(text: str) -> Path:
    return Path(text).expanduser()


def parse_dtype(text: str) -> str:
    if text not in ("auto", "float32", "bfloat16", "int8"):
        raise argparse.ArgumentTypeError(f"dtype must be auto, float32, bfloat16 or int8, found {text!r}")
    return text


def parse_port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 65_535:
        raise argparse.ArgumentTypeError(f"a port must be a number from 1 to 65535, found {text!r}")
    return int(text)


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


def parse_key(text: str) -> str:
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise argparse.ArgumentTypeError("a key must consist of one or more printable ASCII characters without spaces")
    return text


def parse_names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def parse_hosts(text: str) -> tuple[str, ...]:
    names = tuple(parse_names(text))
    for name in names:
        if not HOST.fullmatch(name):
            found = f"expected names such as example.org or *.example.org without a port, or *; found {name!r}"
            raise argparse.ArgumentTypeError(found)
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
        return parse_key(content.decode("ascii", "replace").strip())
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
    parse: Callable[[str], Any]  # raises ``ArgumentTypeError`` with the reason if the value is invalid
    default: Any
    help: str
    metavar: str | None = None

    @property
    def variable(self) -> str:
        return PREFIX + self.name.replace("-", "_").upper()

    def add_to(self, group: argparse._ActionsContainer, environ: Mapping[str, str]) -> None:
        """Raises ``ArgumentTypeError`` or ``ValueError`` if the variable is invalid."""
        text = environ.get(self.variable)
        default = self.parse(text) if text else self.default
        options: dict[str, Any] = {"type": self.parse, "metavar": self.metavar}
        if self.parse is parse_bool:
            options = {"action": "store_true"}
        elif self.parse is parse_names:
            options = {"nargs": "+", "metavar": self.metavar}
        group.add_argument(f"--{self.name}", default=default, help=f"{self.help} [{self.variable}]", **options)


def all_checkpoints() -> list[str]:
    """The names of the folders in ``checkpoints/``."""
    folders = CHECKPOINTS.iterdir() if CHECKPOINTS.is_dir() else ()
    return sorted(folder.name for folder in folders if folder.is_dir() and not folder.name.startswith("."))


def default_host(environ: Mapping[str, str]) -> str:
    """Gradio's variable if set; otherwise all interfaces on a Space, and only this machine elsewhere."""
    return environ.get("GRADIO_SERVER_NAME") or ("0.0.0.0" if environ.get("SPACE_ID") else "127.0.0.1")


def without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for a process that handles what visitors send."""
    return {name: value for name, value in environ.items() if not name.startswith(SECRET_PREFIXES)}


def is_zero_gpu(environ: Mapping[str, str]) -> bool:
    """Whether this is a Space on ZeroGPU. Training is off there by default, because its CPU is shared as well."""
    # The same test as in the package spaces.
    return bool(environ.get("SPACE_ID")) and environ.get("SPACES_ZERO_GPU", "").lower() in ("1", "t", "true")


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


def general_flags(environ: Mapping[str, str]) -> list[Flag]:
    # On ZeroGPU, a GPU is available only inside Gradio's events, whatever torch reports.
    is_zero = is_zero_gpu(environ)
    device, port = "cpu" if is_zero else "auto", environ.get("GRADIO_SERVER_PORT") or "7860"
    return [
        Flag("device", str, device, "torch device, or auto: cuda if usable, otherwise cpu"),
        Flag("dtype", parse_dtype, "auto", "auto, float32, bfloat16 or int8; auto is float32 below 50 M weights"),
        Flag("host", str, default_host(environ), "address to listen on"),
        Flag("port", parse_port, port, "port to listen on"),
        Flag("share", parse_bool, False, "also serve at a public gradio.live address"),
        Flag(
            "trusted-proxies",
            partial(parse_count, 0),
            None,
            "number of proxies in front of this server whose X-Forwarded-For is trusted; by default 0, but 1 on a "
            "Space and with --share",
        ),
        Flag("api-key", parse_key, None, "secret that everything except /health requires"),
        Flag("api-key-file", parse_path, None, "file with that secret, to hide it from process lists"),
        Flag(
            "allowed-hosts",
            parse_hosts,
            (),
            "further host names of this server, such as example.org or *.example.org, or * for all; IP addresses, "
            "localhost, this machine's name and names without a dot always work",
            "HOST[,HOST]",
        ),
        Flag(
            "allowed-origins",
            parse_origins,
            (),
            "origins whose web pages may call this server, such as https://example.org, or * for all",
            "ORIGIN[,ORIGIN]",
        ),
        Flag("access-log", parse_bool, False, "print a line for every request"),
        Flag("log-level", partial(parse_choice, LOG_LEVELS), "warning", f"one of {', '.join(LOG_LEVELS)}"),
        Flag("log-format", partial(parse_choice, get_args(LogFormat)), "text", "text, or json: one object per line"),
        Flag(
            "watchdog-seconds",
            partial(parse_count, 0),
            0,
            "end the process, so that it is restarted, if its event loop is blocked for this long; 0: never",
        ),
        Flag("no-train", parse_bool, is_zero, "do not let visitors train GPTs"),
        Flag("cache", parse_path, default_cache(environ), "folder that caches computed results"),
        Flag("no-kernels", parse_bool, False, "write with torch alone, which is slower on a CPU"),
    ]


ENGINE_FLAGS = [
    Flag(
        "engine-url",
        parse_names,
        [],
        "address of the engine, for all models or for one",
        "[MODEL=]http://HOST:PORT/v1",
    ),
    Flag(
        "engine-model",
        parse_names,
        [],
        "the engine's name for the model, if it cannot be found automatically",
        "[MODEL=]NAME",
    ),
    Flag("engine-key", parse_key, None, "API key for the engine"),
]
LIMIT_FLAGS = [
    Flag(
        each.name.replace("_", "-"),
        partial(parse_count, each.metadata["least"]),
        each.default,
        each.metadata["text"],
    )
    for each in fields(Limits)
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
    limits = parser.add_argument_group("limits")
    for group, flags in ((parser, general_flags(environ)), (engine, ENGINE_FLAGS), (limits, LIMIT_FLAGS)):
        for flag in flags:
            try:
                flag.add_to(group, environ)
            except (argparse.ArgumentTypeError, ValueError) as error:
                parser.error(f"{flag.variable}: {error}")
    parser.add_argument(
        "--checkpoint",
        nargs="+",
        action="extend",
        metavar="NAME_OR_FOLDER_OR_HUB_ID",
        help="names under checkpoints/, folders, weight files, or Hub ids (USER/NAME@step* for the steps of a "
        f"training); by default everything in checkpoints/ [{PREFIX}CHECKPOINT, separated by commas]",
    )
    found = parser.parse_args(arguments)
    if found.api_key and found.api_key_file:
        parser.error("--api-key and --api-key-file cannot be used together")
    try:
        api_key = found.api_key if found.api_key_file is None else read_key_file(found.api_key_file)
    except argparse.ArgumentTypeError as error:
        parser.error(f"--api-key-file: {error}")
    checkpoints = found.checkpoint or parse_names(environ.get(f"{PREFIX}CHECKPOINT", "")) or all_checkpoints()
    trusted_proxies = found.trusted_proxies
    if trusted_proxies is None:
        trusted_proxies = 1 if environ.get("SPACE_ID") or found.share else 0
    return Settings(
        checkpoints=tuple(dict.fromkeys(checkpoints)),
        device=found.device,
        dtype=found.dtype,
        host=found.host,
        port=found.port,
        share=found.share,
        trusted_proxies=trusted_proxies,
        api_key=api_key,
        allowed_hosts=found.allowed_hosts,
        allowed_origins=found.allowed_origins,
        access_log=found.access_log,
        log_level=found.log_level,
        log_format=found.log_format,
        watchdog_seconds=found.watchdog_seconds,
        train=not found.no_train,
        cache=found.cache,
        kernels=not found.no_kernels,
        zero_gpu=is_zero_gpu(environ),
        engine_urls=tuple(found.engine_url),
        engine_models=tuple(found.engine_model),
        engine_key=found.engine_key,
        limits=Limits(**{each.name: getattr(found, each.name) for each in fields(Limits)}),
    )


def check_address(host: str, port: int) -> None:
    """Raise ``OSError`` if the server cannot listen there. The advice in Gradio's own message does not apply here."""
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        raise OSError(f"cannot listen on {host}:{port} ({error.strerror or error})") from None
