"""SIGTERM and Ctrl-C: the first lets texts that are being written come to their end, the second does not wait."""

import os
import signal
import threading

from gradio import tunneling


def listen_for_end() -> threading.Event:
    """An event that is set by the first of these signals. Call it in the main thread."""
    asked_to_end = threading.Event()

    def end(number: int, _frame: object) -> None:
        if asked_to_end.is_set():
            leave(128 + number)
        asked_to_end.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    return asked_to_end


def leave(status: int) -> None:
    """End the process at once, and the tunnel of ``--share``, which is a process of its own and would stay."""
    for tunnel in tunneling.CURRENT_TUNNELS:
        if tunnel.proc is not None:
            tunnel.proc.terminate()
    os._exit(status)
