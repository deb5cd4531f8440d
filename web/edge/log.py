"""A log that says a thing once, however often it happens."""

import logging
import time

QUIET_SECONDS = 60.0  # in which the same thing is not said again
MAX_REMEMBERED = 1_000  # different things


class SaidOnce(logging.Filter):
    """Lets a record through unless the same thing was logged within the last minute; then says how often it was."""

    def __init__(self) -> None:
        super().__init__()
        self.said: dict[object, tuple[float, int]] = {}  # when, and how often since

    def filter(self, record: logging.LogRecord) -> bool:
        thing, now = what_it_says(record), time.monotonic()
        at, count = self.said.get(thing, (-QUIET_SECONDS, 0))
        if now - at < QUIET_SECONDS:
            self.said[thing] = at, count + 1
            return False
        if len(self.said) >= MAX_REMEMBERED:
            self.said.clear()
        self.said[thing] = now, 0
        if count:
            record.msg = f"{record.getMessage()} ({count:,} more times since this was last logged)"
            record.args = ()
        return True


def what_it_says(record: logging.LogRecord) -> object:
    """The message before its values are filled in; of an exception, its kind and where it was raised."""
    error = record.exc_info[1] if record.exc_info else None
    where = None
    if error is not None:
        traceback = error.__traceback__
        while traceback is not None and traceback.tb_next is not None:
            traceback = traceback.tb_next
        where = type(error), traceback and (traceback.tb_frame.f_code.co_filename, traceback.tb_lineno)
    return record.name, record.msg, where


def say_things_once() -> None:
    """Do this for uvicorn's log, and for all that is logged without a handler of its own."""
    handlers = [*logging.getLogger("uvicorn").handlers, *logging.getLogger().handlers, logging.lastResort]
    for handler in handlers:
        if handler and not any(isinstance(each, SaidOnce) for each in handler.filters):
            handler.addFilter(SaidOnce())
