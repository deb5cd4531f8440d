"""Answers of Gradio's endpoints that have not been sent yet.

Gradio keeps an answer as Python objects, many times the size of its JSON, until a client collects it, and traverses
them all on the event loop. So an endpoint stores its answer here and gives Gradio a placeholder, which
``web/edge/gradio_queue.py`` replaces with the JSON when the response is sent.
"""

import re
import secrets
import threading
from collections.abc import Hashable
from dataclasses import dataclass, field

from .budget import Budget

PLACEHOLDER = re.compile(rb'"headscope-answer-([0-9a-f]{32})"')


@dataclass
class SessionAnswers:
    """The uncollected answers of one Gradio session, as JSON by the number in their placeholder."""

    client: Hashable
    answers: dict[str, bytes] = field(default_factory=dict)


class UncollectedAnswers:
    """The uncollected answers of all sessions. Thread-safe."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.sessions: dict[str, SessionAnswers] = {}
        self.lock = threading.Lock()

    def store(self, answer: bytes, session: str, client: Hashable) -> str:
        """Keep a JSON answer for the client of the Gradio session, and return its placeholder. Raises ``NoRoom``."""
        self.budget.take(len(answer), client)
        number = secrets.token_hex(16)
        with self.lock:
            self.sessions.setdefault(session, SessionAnswers(client)).answers[number] = answer
        return f"headscope-answer-{number}"

    def fill_in(self, content: bytes, session: str) -> bytes:
        """Replace placeholders in ``content`` with this session's answers, and remove these answers from here."""
        return PLACEHOLDER.sub(lambda match: self.take(match[1].decode(), session) or match[0], content)

    def take(self, number: str, session: str) -> bytes | None:
        with self.lock:
            pending = self.sessions.get(session)
            if pending is None or number not in pending.answers:
                return None
            answer = pending.answers.pop(number)
            if not pending.answers:
                del self.sessions[session]
        self.budget.give_back(len(answer), pending.client)
        return answer

    def drop(self, session: str) -> None:
        """Remove the uncollected answers of a session."""
        with self.lock:
            pending = self.sessions.pop(session, None)
        if pending:
            self.budget.give_back(sum(map(len, pending.answers.values())), pending.client)
