"""A stand-in for the package ``spaces`` on ZeroGPU, as far as a machine without ZeroGPU allows.

As on ZeroGPU, a decorated function runs in a forked process, its arguments and the values it yields are pickled, its
side effects are lost, it may not be a coroutine, and torch reports a GPU everywhere, although there is none outside the
function. More strictly than ZeroGPU, it runs only in Gradio events. Each call writes a line to the file
``ZERO_GPU_LOG``.
"""

import inspect
import multiprocessing
import os
import pickle
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import gradio as gr
import torch
from gradio.context import LocalContext

QUOTA = "You have exceeded your GPU quota."
END = b""

is_available = torch.cuda.is_available
torch.cuda.is_available = lambda: True


def GPU(task: Callable[..., Any] | None = None, *, duration: Any = 60) -> Any:
    if task is None:
        return lambda function: GPU(function, duration=duration)
    if inspect.iscoroutinefunction(task) or inspect.isasyncgenfunction(task):
        raise NotImplementedError
    assert inspect.isgeneratorfunction(task)
    context = multiprocessing.get_context("fork")

    def work(arguments: bytes, results: Any, stopped: Any) -> None:
        torch.cuda.is_available = is_available
        generator = task(*pickle.loads(arguments))
        for value in generator:
            results.put(pickle.dumps(value))
            if stopped.is_set():
                generator.close()
                break
        results.put(END)

    @wraps(task)
    def call(*arguments: Any) -> Iterator[Any]:
        request = LocalContext.request.get(None)
        if request is None:
            raise RuntimeError("the GPU was asked for outside of a Gradio event")
        seconds = duration(*arguments) if callable(duration) else duration
        with open(os.environ["ZERO_GPU_LOG"], "a") as log:
            print(os.getpid(), seconds, file=log, flush=True)
        if os.path.exists(os.environ["ZERO_GPU_LOG"] + ".quota"):
            raise gr.Error(QUOTA, print_exception=False)
        results, stopped = context.SimpleQueue(), context.Event()
        process = context.Process(target=work, args=(pickle.dumps(arguments), results, stopped), daemon=True)
        process.start()
        try:
            while (value := results.get()) != END:
                yield pickle.loads(value)
        finally:
            stopped.set()
            while process.is_alive() and results.get() != END:
                pass
            process.join()

    return call
