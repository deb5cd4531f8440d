"""Which tokens a query may look at."""

import torch
from torch import Tensor


def causal_mask(n_query: int, n_key: int, device: torch.device, window: int | None = None) -> Tensor | None:
    """Which of ``n_key`` tokens each of the last ``n_query`` may look at, ``(n_query, n_key)`` bool.

    Each sees itself and those before it, with a ``window`` at most that many in all. None if all see all.
    """
    n_seen = n_key if window is None else min(window, n_key)
    if n_query == 1 and n_seen == n_key:
        return None
    seen = torch.ones(n_query, n_key, dtype=torch.bool, device=device).tril(n_key - n_query)
    return seen if n_seen == n_key else seen.triu(n_key - n_query - n_seen + 1)
