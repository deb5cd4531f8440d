"""Large tensors outside the heap."""

import mmap

import torch
from torch import Tensor


def mapped(n_rows: int, n_columns: int) -> Tensor:
    """Float32 zeros ``(n_rows, n_columns)``: they take memory once written to, and give it back when freed.

    Blocks of this size from the heap leave holes in it, and a server grows by many times what it keeps.
    """
    size = n_rows * n_columns
    if not size:
        return torch.zeros(n_rows, n_columns)
    return torch.frombuffer(mmap.mmap(-1, 4 * size), dtype=torch.float32, count=size).view(n_rows, n_columns)
