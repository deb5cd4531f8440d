"""Packing of a GPT's weights into panels for the loops, and layers of a large GPT that compute with these panels."""

import functools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..gpt import GPT
from ..modules.rotary import Rotary
from .int8 import Int8Linear
from .intrinsics import BFLOAT_BYTES
from .linear import project_from
from .panels import WIDTH, IntegerScratch, PairScratch, Rows, TileScratch, in_groups, padded, stride_for
from .state import ZEROS, Weights
from .sums import GROUP, PAIR, UNSIGNED
from .tiles import ROWS

ALIGNMENT = 64  # bytes, so that no vector straddles two cache lines
MIN_HUGE_BYTES = 64_000_000  # bytes; larger sparse arrays must avoid huge pages, which occupy memory as a whole
Array = NDArray[Any]
Linear = nn.Linear | Int8Linear
# The matrices of a layer, in the order of ``forward.QUERY_KEY_VALUE`` and those after it.
MATRICES = (("attn", "c_attn"), ("attn", "c_proj"), ("mlp", "c_fc"), ("mlp", "c_proj"))
GROUPS = {np.int32: GROUP, np.uint32: PAIR}  # inputs per stored number; 1 if missing here
STORED_AS = {np.int32: torch.uint8, np.uint32: torch.bfloat16, np.int16: torch.float16, np.float32: torch.float32}
MIN_PANEL_BYTES = 64_000_000  # below this, a second copy is worth the simpler layers
MIN_THREADED_ROWS = 16  # with fewer, a product on one thread takes no longer than calling other threads


def pack(gpt: GPT, *, share: bool = False) -> Weights:
    """Copy the weights of a ``gpt`` on the CPU, except for the embeddings, which are shared; see ``allocate_weights``.

    With ``share``, the layers of a large ``gpt`` compute with the copies and drop their own weights; see ``fill``.
    """
    weights = allocate_weights(gpt)
    fill(weights, gpt, share=share)
    return weights


def allocate_weights(gpt: GPT) -> Weights:
    """The weights of a ``gpt`` without the numbers of the matrices, which ``fill`` copies.

    float32 is stored as float16 or bfloat16 where every weight allows it. In ``Weights``, ``panels`` holds for each
    layer the matrices of queries, keys and values, attention output, MLP input and MLP output, then that of the output
    head; a number holds the weights for ``group`` inputs. ``panels_at`` ``(n_layer + 1, 4)`` holds the start of each.
    ``biases``, and for int8 ``scales``, hold those of each matrix in the same order, padded to whole panels, followed
    by zeros. ``norms`` ``(n_layer + 1, 4, n_embd)`` are gain and shift of both norms; the last row is for the final
    norm. ``qk_gains`` ``(n_layer, 2, head_dim)`` are the gains of the norms of queries and keys; ``cosines`` and
    ``sines``, flat ``(context_length, n_rotated / 2)``, rotate them.
    """
    matrices = matrices_of(gpt)
    dtype = storage([matrix for row in matrices for matrix in row])
    widths = [[padded(len(matrix.weight)) for matrix in row] for row in matrices]
    group = GROUPS.get(dtype.type, 1)
    longest = max(padded(gpt.config.context_length), *map(max, widths))

    biases = np.zeros(sum(map(sum, widths)) + longest, np.float32)
    scales = biases.copy() if dtype == np.int32 else biases[:0]
    panels_at, biases_at = (np.zeros((len(matrices), 4), np.int64) for _ in range(2))
    at = bias_at = 0
    for layer, row in enumerate(matrices):
        for i, (matrix, width) in enumerate(zip(row, widths[layer], strict=True)):
            panels_at[layer, i], biases_at[layer, i] = at, bias_at
            if matrix.bias is not None:
                biases[bias_at : bias_at + len(matrix.bias)] = floats(matrix.bias)
            if (scale := getattr(matrix, "scale", None)) is not None:
                scales[bias_at : bias_at + len(scale)] = floats(scale)
            at, bias_at = at + width * in_groups(matrix.weight.shape[1], group), bias_at + width
    biases_at[-1, ZEROS] = bias_at
    panels = aligned(at, dtype)

    config = gpt.config
    norms = np.zeros((len(matrices), 4, config.n_embd), np.float32)
    for layer, block in enumerate(gpt.blocks):
        norms[layer] = [*gain_and_shift(block.ln_1), *gain_and_shift(block.ln_2)]
    norms[-1, :2] = gain_and_shift(gpt.ln_f)
    qk_gains = np.zeros((config.n_layer if config.qk_norm else 0, 2, config.head_dim), np.float32)
    for layer, gains in enumerate(qk_gains):
        attn = gpt.blocks[layer].attn
        gains[:] = [floats(norm.weight) for norm in (attn.q_norm, attn.k_norm) if norm]
    cosines, sines = rotations(gpt.blocks[0].attn.rotary)
    attention_scales = np.array([config.attention_scale(layer) for layer in range(config.n_layer)], np.float32)
    windows = np.array([config.window(layer) or config.context_length for layer in range(config.n_layer)], np.int64)
    epsilon: Any = np.float32(config.layer_norm_epsilon)
    tokens = flat(gpt.wte)
    return Weights(
        tokens=tokens,
        positions=tokens[:0] if gpt.wpe is None else flat(gpt.wpe),
        panels=panels,
        group=group,
        panels_at=panels_at,
        scales=scales,
        biases=biases,
        biases_at=biases_at,
        norms=norms,
        epsilon=epsilon,
        attention_scales=attention_scales,
        windows=windows,
        qk_gains=qk_gains,
        cosines=cosines,
        sines=sines,
    )


def matrices_of(gpt: GPT) -> list[list[Linear]]:
    """The matrices of each layer, and then that of the output head."""
    layers = [[getattr(getattr(block, part), name) for part, name in MATRICES] for block in gpt.blocks]
    return [*layers, [gpt.lm_head]]


def fill(weights: Weights, gpt: GPT, *, share: bool = False) -> None:
    """Copy the matrices of a ``gpt`` into the panels of ``weights``, one after the other.

    With ``share``, each layer of a large ``gpt`` then computes with the panels and drops its own weights, so that few
    are in memory twice. A concurrent forward pass finishes with the layers that it started with.
    """
    share = share and weights.panels.nbytes >= MIN_PANEL_BYTES
    for layer, block in enumerate(gpt.blocks):
        for index, (part, name) in enumerate(MATRICES):
            owner = getattr(block, part)
            fill_matrix(weights, layer, index, getattr(owner, name))
            if share:
                setattr(owner, name, PanelLinear(getattr(owner, name), weights, layer, index))
    fill_matrix(weights, len(gpt.h), 0, gpt.lm_head)


def fill_matrix(weights: Weights, layer: int, index: int, linear: Linear) -> None:
    matrix, start = stored(linear.weight, weights.panels.dtype), weights.panels_at[layer, index]
    fill_panels(weights.panels[start : start + padded(len(matrix)) * matrix.shape[1]], matrix)


def gain_and_shift(norm: Any) -> tuple[Array, Array]:
    """The parameters of a norm; RMSNorm's shift is 0."""
    gain = floats(norm.weight)
    bias = getattr(norm, "bias", None)
    return gain, np.zeros_like(gain) if bias is None else floats(bias)


def rotations(rotary: Rotary | None) -> tuple[Array, Array]:
    """Cosine and sine of the angles of every position, one position after the other; empty without rotary positions."""
    if rotary is None:
        return np.zeros(0, np.float32), np.zeros(0, np.float32)
    cosines, sines = rotary.table(torch.device("cpu"))
    return cosines.numpy().reshape(-1), sines.numpy().reshape(-1)


def storage(matrices: Sequence[Linear]) -> np.dtype[Any]:
    """The type to store the weights in; see ``panels``."""
    if {matrix.weight.dtype for matrix in matrices} == {torch.int8}:
        return np.dtype(np.int32)
    has_pairs = all(matrix.weight.shape[1] % PAIR == 0 for matrix in matrices)
    for narrow, stored_as in ((torch.bfloat16, np.uint32), (torch.float16, np.int16)):
        if stored_as == np.uint32 and not has_pairs:
            continue
        if all(torch.equal(matrix.weight.to(narrow).to(matrix.weight.dtype), matrix.weight) for matrix in matrices):
            return np.dtype(stored_as)
    return np.dtype(np.float32)


def stored(weight: Tensor, dtype: np.dtype[Any]) -> Array:
    """A matrix ``(d_out, d_in)`` in the storage type, with as many numbers per output as there are groups of inputs."""
    weight = weight.detach()
    if dtype == np.int16:
        return weight.to(torch.float16).view(torch.int16).numpy()
    if dtype == np.uint32:
        return weight.to(torch.bfloat16).contiguous().view(torch.int32).numpy().view(np.uint32)
    if dtype == np.int32:
        unsigned = (weight.to(torch.int16) + UNSIGNED).to(torch.uint8)
        # Zero weights for padding inputs, which are always 0.
        return nn.functional.pad(unsigned, (0, -weight.shape[1] % GROUP)).contiguous().view(torch.int32).numpy()
    return weight.float().numpy()


def fill_panels(panels: Array, matrix: Array) -> None:
    """Write ``matrix`` ``(d_out, groups)`` into flat ``panels``, and zeros where the last one is not full."""
    d_out, groups = matrix.shape
    shaped = panels.reshape(-1, groups, WIDTH)
    whole, rest = divmod(d_out, WIDTH)
    shaped[:whole] = matrix[: whole * WIDTH].reshape(whole, WIDTH, groups).transpose(0, 2, 1)
    if rest:
        shaped[whole] = 0
        shaped[whole, :, :rest] = matrix[whole * WIDTH :].T


def scratch_for(
    group: int, n_rows: int, depth: int, n_threads: int, *, in_pairs: bool = False, in_tiles: bool = False
) -> IntegerScratch | PairScratch | TileScratch:
    """Scratch memory for ``n_rows`` rounded inputs of at most ``depth`` numbers per thread; empty if it is not needed.

    ``group`` is that of ``Weights``. Set ``in_pairs`` to round the inputs of weights stored as bfloat16, too, and
    ``in_tiles`` to multiply what is rounded in tiles.
    """
    n_read = in_groups(n_rows, ROWS) * ROWS  # tiles are read as a whole
    scratch: IntegerScratch | PairScratch
    if in_pairs and group == PAIR:
        size = n_read * stride_for(depth, BFLOAT_BYTES)
        scratch = PairScratch(aligned(n_threads * size, np.dtype(np.uint16)).reshape(n_threads, -1))
    else:
        size = n_read * stride_for(depth, 1) if group == GROUP else 0
        sizes = (size, np.int8), (n_rows, np.float32), (n_rows, np.int32)
        scratch = IntegerScratch(
            *(aligned(n_threads * size, np.dtype(kind)).reshape(n_threads, -1) for size, kind in sizes)
        )
    return TileScratch(scratch) if in_tiles and scratch.numbers.size else scratch


def floats(values: Tensor) -> NDArray[np.float32]:
    return values.detach().float().numpy()


def flat(embedding: Any) -> Array:
    """The table of an embedding without a copy, or converted to float32 if Numba cannot read its type."""
    weight = embedding.weight.detach()
    view = weight.view(torch.uint16) if weight.dtype == torch.bfloat16 else weight.float()
    return view.numpy().reshape(-1)


def aligned(count: int, dtype: np.dtype[Any], *, is_sparse: bool = False) -> Array:
    """An uninitialised flat array aligned to a cache line; set ``is_sparse`` if only parts of it will be used."""
    n_bytes = count * dtype.itemsize + ALIGNMENT
    # NumPy requests huge pages; torch does not.
    in_small_pages = is_sparse or n_bytes >= MIN_HUGE_BYTES
    raw = torch.empty(n_bytes, dtype=torch.uint8).numpy() if in_small_pages else np.empty(n_bytes, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + count * dtype.itemsize].view(dtype)


class PanelLinear(nn.Module):
    """A linear layer, ``(..., d_in) -> (..., d_out)``: matrix ``index`` of layer ``layer`` in ``weights``.

    It computes in float32 and returns the precision of its input.
    """

    bias: Tensor
    scale: Tensor | None

    def __init__(self, linear: nn.Linear | Int8Linear, weights: Weights, layer: int, index: int) -> None:
        super().__init__()
        self.d_out, self.d_in = linear.weight.shape
        self.dtype = linear.weight.dtype
        self.weights, self.place = weights, (layer, index)
        self.register_buffer("bias", linear.bias)
        self.register_buffer("scale", getattr(linear, "scale", None), persistent=False)
        self.register_state_dict_post_hook(add_weight)

    @property
    def n_made(self) -> int:
        """The number of elements of ``weight``."""
        return self.d_out * self.d_in

    @property
    def weight(self) -> Tensor:
        """The matrix ``(d_out, d_in)`` of the original layer, rebuilt on each access."""
        start, groups = self.weights.panels_at[self.place], in_groups(self.d_in, self.weights.group)
        stored = self.weights.panels[start : start + padded(self.d_out) * groups]
        panels = torch.from_numpy(stored.view(f"i{stored.itemsize}")).view(-1, groups, WIDTH)
        matrix = panels.transpose(1, 2).reshape(-1, groups).view(STORED_AS[stored.dtype.type])
        matrix = matrix[: self.d_out, : self.d_in]
        if stored.dtype == np.int32:
            return (matrix.to(torch.int16) - UNSIGNED).to(torch.int8)
        return matrix.to(self.dtype)

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, self.d_in).float().contiguous()
        n, width = len(rows), padded(self.d_out)
        n_threads = torch.get_num_threads() if n >= MIN_THREADED_ROWS else 1
        out = np.empty((n, width), np.float32)
        inputs, outputs = Rows(rows.numpy().reshape(-1), 0, self.d_in), Rows(out.reshape(-1), 0, width)
        scratch = scratch_for(self.weights.group, n, self.d_in, n_threads)

        def compute(thread: int) -> None:
            shape = n, self.d_in, self.d_out
            project_from(self.weights, *self.place, inputs, *shape, outputs, False, scratch, thread, n_threads)

        others = [helpers().submit(compute, thread) for thread in range(1, n_threads)]
        compute(0)
        for other in others:
            other.result()
        return torch.from_numpy(out)[:, : self.d_out].to(x.dtype).view(*x.shape[:-1], -1)


def add_weight(linear: PanelLinear, destination: dict[str, Any], prefix: str, _metadata: object) -> None:
    """Add the rebuilt matrix to what ``state_dict`` returns."""
    destination[f"{prefix}weight"] = linear.weight


@functools.cache
def helpers() -> ThreadPoolExecutor:
    """The threads that share a product."""
    return ThreadPoolExecutor(thread_name_prefix="a share of a product")
