"""Writing in the background: a bounded number of threads, and progress at a pace that a browser can follow."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from model import Step

from .settings import MAX_WRITERS, UPDATE_SECONDS

TakeStep = Callable[[Step, bool], None]


class Job:
    """One text being written. ``cancel`` from any thread; the event loop that made it follows ``progress``."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.news = asyncio.Event()
        self.cancelled = threading.Event()
        self.future: Future[None]

    def run(self, steps: Iterator[Step], take: TakeStep) -> None:
        """Hand each step to ``take``, in a thread. After ``cancel`` one more is handed over, marked as the last."""
        for step in steps:
            last = self.cancelled.is_set()
            take(step, last)
            if last:
                return
            if not self.news.is_set():
                self.loop.call_soon_threadsafe(self.news.set)

    async def progress(self) -> AsyncIterator[None]:
        """Yield when something was written, at once the first time, then every ``UPDATE_SECONDS`` at most.

        Ends with the writing; raises what the writing raised.
        """
        done = asyncio.ensure_future(asyncio.wrap_future(self.future))
        news = asyncio.ensure_future(self.news.wait())
        try:
            while not done.done():
                await asyncio.wait({done, news}, return_when=asyncio.FIRST_COMPLETED)
                if not done.done():
                    self.news.clear()
                    yield
                    await asyncio.wait({done}, timeout=UPDATE_SECONDS)
                    news = asyncio.ensure_future(self.news.wait())
            if not self.future.cancelled():
                done.result()
        finally:
            news.cancel()

    def cancel(self) -> None:
        """Ask the writing to end at its next step, or never to begin."""
        self.cancelled.set()
        self.future.cancel()


class Writer:
    """Starts jobs; at most ``MAX_WRITERS`` run at a time, the others wait for their turn."""

    def __init__(self) -> None:
        self.threads = ThreadPoolExecutor(MAX_WRITERS, thread_name_prefix="writer")
        self.jobs: set[Job] = set()

    def start(self, steps: Iterator[Step], take: TakeStep) -> Job:
        """Begin to write; call it on an event loop."""
        job = Job()
        job.future = self.threads.submit(job.run, steps, take)
        self.jobs.add(job)
        job.future.add_done_callback(lambda _: self.jobs.discard(job))
        return job

    def close(self) -> None:
        """End every job, so that the process can end."""
        for job in list(self.jobs):
            job.cancel()
        self.threads.shutdown(wait=False, cancel_futures=True)
