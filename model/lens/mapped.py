"""Large tensors allocated outside the heap."""

import mmap

import torch
from torch import Tensor


def mapped(n_rows: int, n_columns: int) -> Tensor:
    """Float32 zeros ``(n_rows, n_columns)`` that take up memory only once written to, and return it when freed.

    Allocating such blocks on the heap would fragment it, and a server would grow to many times what it stores.
    """
    size = n_rows * n_columns
    if not size:
        return torch.zeros(n_rows, n_columns)
    return torch.frombuffer(mmap.mmap(-1, 4 * size), dtype=torch.float32, count=size).view(n_rows, n_columns)
