"""Every module can be imported without the modules that only Unix has, as on Windows."""

import json
import os
import resource
import subprocess
import sys

import pytest

from helpers.files import ROOT
from model.checkpoint.write import is_running
from model.train.live import bound_memory
from web.serving.template_worker import bound_address_space

UNIX = ["fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty"]
OPTIONAL = ["ray", "triton"]  # packages without which a module is not used
# The modules of the repository find the system to be Windows; other packages say themselves where they run.
IMPORT_ALL = """
import builtins, importlib, json, sys, types

unix, optional, modules = map(json.loads, sys.argv[1:])
import_module = builtins.__import__


class Windows(types.ModuleType):
    platform = "win32"

    def __getattr__(self, name):
        return getattr(sys, name)


known = {"sys": Windows("sys"), "msvcrt": types.ModuleType("msvcrt")}


def as_on_windows(name, globals=None, *others, **named):
    importer = (globals or {}).get("__name__", "").split(".")[0]
    if importer not in ("model", "web", "app"):
        return import_module(name, globals, *others, **named)
    if name.split(".")[0] in unix:
        raise ModuleNotFoundError(f"{globals['__name__']} imports {name}", name=name)
    return known.get(name) or import_module(name, globals, *others, **named)


builtins.__import__ = as_on_windows
for name in modules:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in optional:
            raise
"""


@pytest.mark.slow
def test_no_module_needs_unix() -> None:
    files = [*(ROOT / "model").rglob("*.py"), *(ROOT / "web").rglob("*.py"), ROOT / "app.py"]
    names = {".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for file in files}
    arguments = map(json.dumps, (UNIX, OPTIONAL, sorted(names)))
    command = [sys.executable, "-c", IMPORT_ALL, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]


def test_no_signal_is_sent_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """There, ``os.kill`` would send Ctrl-C."""
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("a signal was sent"))
    assert is_running(os.getpid())


def test_a_limit_that_the_system_refuses_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("current limit exceeds maximum limit")  # as on macOS

    monkeypatch.setattr(resource, "setrlimit", refuse)
    bound_memory(1 << 30)
    bound_address_space()
