"""A GPT with a compiled forward pass: the packed weights, the cache, and the threads that share each pass."""

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..config import GPTConfig
from ..gpt import GPT
from .attention import BLOCK_ROWS
from .forward import announce, take_part
from .functions import BLOCK, address_of, copy_into, draw
from .intrinsics import BFLOAT_BYTES, FLOAT_BYTES
from .jit import entry_of
from .pack import ALIGNMENT, aligned, allocate_weights, fill, scratch_for
from .panels import WIDTH, IntegerScratch, PairScratch, TileScratch, in_groups, padded, stride_for
from .state import (
    ACTIVATIONS,
    ARRIVED,
    DONE,
    IS_MASKED,
    IS_WANTED,
    LEADER,
    N_KEYS,
    N_RECORDED,
    N_ROWS,
    N_THREADS,
    N_WANTED,
    PASS,
    POSITION,
    RECORD,
    RECORDED,
    Memory,
    Shape,
    Weights,
)
from .sums import PAIR
from .tiles import ROWS

FIRST_BACKOFF, MAX_BACKOFF = 64, 512  # passes to run on one thread after several threads were slower
# Numbers that are allocated at once for the attention weights of several tokens: malloc maps larger blocks anew.
ROOM = 30_000
MAX_TIMED_ROWS = 128  # passes over more rows run on all threads

# A token to read: its id, the slot of its text, its position in the text, whether the logits after it are needed, and
# its row in the recorded attention weights.
Row = tuple[int, int, int, bool, int]
NOT_RECORDED = -1
NOTHING_SEEN = -2  # no pass, and no call to stop


class RecordedWeights:
    """The attention weights of ``n_rows`` rows, which a pass wrote into a part of ``room`` that begins at ``start``."""

    __slots__ = ("config", "n_keys", "n_rows", "room", "start", "stride")

    def __init__(
        self, room: NDArray[np.float32], start: int, n_rows: int, n_keys: int, stride: int, config: GPTConfig
    ) -> None:
        self.room, self.start, self.n_rows, self.n_keys, self.stride = room, start, n_rows, n_keys, stride
        self.config = config

    def array(self) -> NDArray[np.float32]:
        """The weights ``(n_layer, n_head, n_rows, n_keys)``."""
        shape = self.config.n_layer, self.config.n_head, self.n_rows, self.stride
        return self.room[self.start : self.start + math.prod(shape)].reshape(shape)[..., : self.n_keys]

    @property
    def nbytes(self) -> int:
        return FLOAT_BYTES * self.config.n_layer * self.config.n_head * self.n_rows * self.n_keys


class CompiledGPT:
    """Reads up to ``max_rows`` tokens at a time from ``n_slots`` texts, with the weights of a ``gpt`` on the CPU.

    Everything between the matrix products is computed in float32, whatever the precision of the weights. So are the
    products, with two exceptions: int8 weights and, with ``in_pairs``, weights stored as bfloat16. Their inputs are
    rounded; with ``in_pairs``, so are keys, values and the attention weights that multiply values. With ``in_tiles``,
    such products with weights are in tiles, which this process must be permitted to use (``tiles``). The result for a
    text is bit-identical for any batch and any number of threads. With ``share``, a large ``gpt`` computes with the
    packed weights from then on (``pack.fill``). Only one thread at a time may call its methods.
    """

    def __init__(
        self,
        gpt: GPT,
        n_slots: int,
        max_rows: int,
        max_threads: int = 1,
        *,
        in_pairs: bool = False,
        in_tiles: bool = False,
        share: bool = False,
    ) -> None:
        config = self.config = gpt.config
        shape, weights = shape_of(config, n_slots), allocate_weights(gpt)
        self.weights = weights
        deepest = deepest_inputs(shape, max_rows)
        scratch = scratch_for(weights.group, max_rows, deepest, max_threads, in_pairs=in_pairs, in_tiles=in_tiles)
        memory = self.memory = memory_for(shape, scratch, max_rows, max_threads)
        self.logits = torch.from_numpy(memory.logits.reshape(max_rows, -1)[:, : config.vocab_size])
        self.rows_of_logits = self.logits.numpy()
        self.logit_bytes, self.row_bytes = memory.logits.data.cast("B"), self.rows_of_logits.strides[0]
        # Unnormalised probabilities, scratch memory for sampling.
        self.chances = np.empty(config.vocab_size, np.float32)
        self.sums = np.empty(-(-config.vocab_size // BLOCK))
        self.arguments = (shape, weights, memory)
        self.threads = ThreadChooser(max_threads)
        self.team: list[Follower] = []
        self.n_slots, self.n_passes = n_slots, 0
        self.room, self.n_used, self.room_address = empty_floats(0), 0, 0
        n_panels = padded(config.context_length) // WIDTH
        self.strides = [stride_for(i * WIDTH, FLOAT_BYTES) for i in range(n_panels + 1)]
        self.take_part = entry_of(take_part, int(LEADER), NOTHING_SEEN, *self.arguments)  # compiles the loops
        self.read([(0, 0, 0, True, NOT_RECORDED)])
        self.draw(0, 0.0, 1.0, 0.5, config.vocab_size)
        copied(np.zeros((1, 1, 2), np.float32)[..., :1])
        self.room_for(1, 1)
        fill(weights, gpt, share=share)  # only now, because the loops might not compile
        announce(memory.control, 0)
        self.team += [Follower(self.arguments, thread) for thread in range(1, max_threads)]

    @property
    def products(self) -> str:
        """The kind of matrix products, which ``products.KINDS`` lists."""
        scratch = self.memory.scratch
        if isinstance(scratch, TileScratch):
            return f"{precision_of(scratch.rounded)} in tiles"
        return precision_of(scratch)

    @property
    def summary(self) -> NDArray[np.float64]:
        """For each row of the latest logits: the most probable token, its logit, and the log-sum-exp of all."""
        return self.memory.summary

    def read(self, rows: Sequence[Row], head_mask: NDArray[np.float32] | None = None) -> RecordedWeights | None:
        """Read ``rows``; the rows of a text must be in the order of their positions, without gaps.

        ``head_mask`` ``(n_layer, rows, n_head)`` scales the context vectors. ``logits`` and ``summary`` then hold the
        requested rows until the next call. Returns the attention weights of the recorded rows, with one key more than
        their largest position; None if no row is recorded. Raises ``ValueError`` for an invalid row or mask, because
        the compiled code does not check bounds.
        """
        job, n_rows = self.memory.job, len(rows)
        self.check(rows, head_mask)
        self.memory.rows[:n_rows] = rows
        n_recorded = max([row[RECORD] for row in rows]) + 1
        recorded = None
        if n_recorded:
            n_keys = max([row[POSITION] for row in rows if row[RECORD] != NOT_RECORDED]) + 1
            # With room for whole panels of keys, because the weights are computed there.
            recorded = self.room_for(n_recorded, n_keys)
            job[RECORDED], job[N_KEYS] = self.room_address + FLOAT_BYTES * recorded.start, n_keys
        if head_mask is not None:
            self.memory.mask[: head_mask.size] = head_mask.reshape(-1)
        job[N_ROWS], job[N_WANTED], job[N_RECORDED] = n_rows, sum([row[IS_WANTED] for row in rows]), n_recorded
        job[IS_MASKED] = head_mask is not None
        self.run(n_rows)
        return recorded

    def room_for(self, n_rows: int, n_keys: int) -> RecordedWeights:
        """Uninitialised memory for the attention weights of ``n_rows`` rows.

        Small ones share an array: allocation takes 1 % of a small model's time.
        """
        stride = self.strides[-(-n_keys // WIDTH)]
        size = self.config.n_layer * self.config.n_head * n_rows * stride
        if self.n_used + size > len(self.room):
            self.room = np.empty(max(size, ROOM) + ALIGNMENT // FLOAT_BYTES, np.float32)
            self.room_address = int(address_of(self.room))
            self.n_used = -self.room_address % ALIGNMENT // FLOAT_BYTES
        start, self.n_used = self.n_used, self.n_used + size
        return RecordedWeights(self.room, start, n_rows, n_keys, stride, self.config)

    def check(self, rows: Sequence[Row], head_mask: NDArray[np.float32] | None) -> None:
        """Raise ``ValueError`` unless the compiled loops can read ``rows`` within the bounds of their arrays."""
        config, n_rows, (max_rows, _) = self.config, len(rows), self.memory.rows.shape
        if not 0 < n_rows <= max_rows:
            raise ValueError(f"a pass reads 1 to {max_rows} tokens, found {n_rows}")
        vocab_size, n_slots, context_length = config.vocab_size, self.n_slots, config.context_length
        for token, slot, position, _, record in rows:
            if not (
                0 <= token < vocab_size
                and 0 <= slot < n_slots
                and 0 <= position < context_length
                and NOT_RECORDED <= record < n_rows
            ):
                allowed = f"token ids below {vocab_size}, slots below {n_slots}, positions below {context_length}"
                raise ValueError(
                    f"token {token} at position {position} of slot {slot}, recorded as {record}: {allowed}"
                )
        if head_mask is not None and head_mask.shape != (config.n_layer, n_rows, config.n_head):
            expected = (config.n_layer, n_rows, config.n_head)
            raise ValueError(f"a head mask of shape {head_mask.shape}, expected {expected}")

    def run(self, n_rows: int) -> None:
        """Run the pass that ``job`` describes, on the number of threads that has recently been fastest."""
        n_threads = self.threads.choose(n_rows)
        self.memory.job[N_THREADS] = n_threads
        self.memory.control[DONE] = self.memory.control[ARRIVED] = 0
        started = time.perf_counter()
        if n_threads > 1:
            self.n_passes += 1
            announce(self.memory.control, self.n_passes)
            for follower in self.team:
                follower.wake()
        self.take_part(int(LEADER), NOTHING_SEEN, *self.arguments)
        self.threads.took(n_rows, n_threads, time.perf_counter() - started)

    def logits_of(self, row: int) -> bytearray:
        """A copy of row ``row`` of the latest logits, as the bytes of float32 numbers: NumPy's copy takes longer."""
        start = row * self.row_bytes
        return bytearray(self.logit_bytes[start : start + self.config.vocab_size * FLOAT_BYTES])

    def copy(self, source: int, target: int, length: int) -> None:
        """Copy the keys and values of the first ``length`` tokens of one slot into another."""
        if source == target:
            return
        config, panels = self.config, -(-length // WIDTH)
        group = self.memory.group
        T, D, n = in_groups(config.context_length, group), config.head_dim // group, in_groups(length, group)
        heads = config.n_layer, self.n_slots, config.n_kv_head
        keys, values = self.memory.keys.reshape(*heads, -1), self.memory.values.reshape(*heads, -1, T, WIDTH)
        keys[:, target, :, : panels * WIDTH * D] = keys[:, source, :, : panels * WIDTH * D]
        values[:, target, :, :, :n] = values[:, source, :, :, :n]

    def draw(self, row: int, most: float, temperature: float, uniform: float, n_drawable: int) -> int:
        """Draw a token from row ``row`` of the latest logits, as ``model.sampling.sample`` does.

        ``most`` is the largest of the first ``n_drawable`` logits, which are those of the tokens that may be drawn.
        """
        logits, sums = self.rows_of_logits[row, :n_drawable], self.sums[: -(-n_drawable // BLOCK)]
        return int(draw(logits, most, temperature, uniform, self.chances, sums))

    def close(self) -> None:
        """Stop the other threads; later passes run on one."""
        self.threads.max_threads = 1
        announce(self.memory.control, -1)
        for follower in self.team:
            follower.wake()


def copied(numbers: NDArray[np.float32]) -> NDArray[np.float32]:
    """A copy of an array of three dimensions."""
    copy = np.empty(numbers.shape, np.float32)
    copy_into(numbers, copy)
    return copy


def shape_of(config: GPTConfig, n_slots: int) -> Shape:
    return Shape(
        n_layer=config.n_layer,
        n_head=config.n_head,
        n_kv_head=config.n_kv_head,
        head_dim=config.head_dim,
        n_embd=config.n_embd,
        inner_dim=config.inner_dim,
        vocab_size=config.vocab_size,
        context_length=config.context_length,
        n_slots=n_slots,
        n_rotated=0 if config.rotary is None else config.rotary.n_dim,
        activation=ACTIVATIONS[config.activation_function],
        is_gated=config.gated_mlp,
        is_parallel=config.parallel,
        is_rms=config.norm == "RMSNorm",
        has_qk_norm=config.qk_norm,
    )


def precision_of(scratch: IntegerScratch | PairScratch) -> str:
    """The precision to which the inputs of products are rounded; "float32" if they are not."""
    if isinstance(scratch, PairScratch):
        return "bfloat16"
    return "int8" if scratch.numbers.size else "float32"


def deepest_inputs(shape: Shape, max_rows: int) -> int:
    """The most numbers in a row of inputs, or in ``max_rows`` that together hold a block's queries or weights."""
    block = BLOCK_ROWS * stride_for(max(shape.context_length, shape.head_dim), BFLOAT_BYTES)
    return max(shape.n_embd, shape.inner_dim, shape.n_head * shape.head_dim, -(-block // max_rows))


def memory_for(
    shape: Shape, scratch: IntegerScratch | PairScratch | TileScratch, max_rows: int, max_threads: int
) -> Memory:
    """Memory for passes over at most ``max_rows`` tokens; see ``CompiledGPT``."""
    L, H, K, D = shape.n_layer, shape.n_head, shape.n_kv_head, shape.head_dim
    T, C, inner = shape.context_length, shape.n_embd, shape.inner_dim
    rounded = scratch.rounded if isinstance(scratch, TileScratch) else scratch
    in_pairs = isinstance(rounded, PairScratch) and D % PAIR == 0  # keys and values are multiplied like weights
    group, stored = (PAIR, np.dtype(np.uint32)) if in_pairs else (1, np.dtype(np.float32))
    n_inputs = in_groups(max_rows, ROWS) * ROWS  # tiles are read as a whole
    is_rounded = isinstance(rounded, PairScratch)
    multiplied = np.dtype(np.uint16 if is_rounded else np.float32)
    return Memory(
        control=np.zeros(24, np.int64),
        job=np.zeros(7, np.int64),
        rows=np.zeros((max_rows, 5), np.int64),
        mask=np.ones(L * max_rows * H, np.float32),
        group=group,
        keys=aligned(L * shape.n_slots * K * padded(T) * D // group, stored, is_sparse=True),
        values=aligned(L * shape.n_slots * K * padded(D) * in_groups(T, group), stored, is_sparse=True),
        x=float_rows(max_rows, C),
        qkv=float_rows(max_rows, (H + 2 * K) * D),
        contexts=zeros(n_inputs * stride_for(H * D, multiplied.itemsize), multiplied),
        hidden=float_rows(max_rows, inner * (2 if shape.is_gated else 1)),
        activated=zeros(n_inputs * stride_for(inner, multiplied.itemsize) if is_rounded else 0, multiplied),
        logits=float_rows(max_rows, shape.vocab_size),
        summary=np.zeros((max_rows, 3)),
        normed=empty_floats(max_threads * max_rows * C).reshape(max_threads, -1),
        scores=float_rows(max_threads * BLOCK_ROWS, T).reshape(max_threads, -1),
        context=float_rows(max_threads * BLOCK_ROWS, D).reshape(max_threads, -1),
        key=empty_floats(max_threads * BLOCK_ROWS * D).reshape(max_threads, -1),
        scratch=scratch,
    )


def zeros(count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """A flat array of zeros; see ``aligned``."""
    made = aligned(count, dtype)
    made[:] = 0
    return made


def empty_floats(count: int) -> NDArray[np.float32]:
    """An uninitialised flat array; see ``aligned``."""
    return aligned(count, np.dtype(np.float32))


def float_rows(n_rows: int, count: int) -> NDArray[np.float32]:
    """An uninitialised flat array for ``n_rows`` of ``count`` numbers each."""
    return empty_floats(n_rows * stride_for(count, FLOAT_BYTES))


@dataclass
class Timings:
    """Timings of recent passes with the same number of rows."""

    alone: float  # seconds on one thread, when last tried
    n_slow: int = 0  # slower passes on several threads, minus the others
    backoff: int = 0  # remaining passes on one thread; if negative, minus the number of passes on several
    next_backoff: int = FIRST_BACKOFF


class ThreadChooser:
    """Chooses the number of threads for a pass: all, unless one has recently been faster, as on a busy machine.

    Threads that share a pass wait for each other, so one thread that the system does not schedule delays all. A pass
    over many rows takes so long that every thread is scheduled.
    """

    def __init__(self, max_threads: int) -> None:
        self.max_threads = max_threads
        self.timings: dict[int, Timings] = {}  # by the number of rows

    def choose(self, n_rows: int) -> int:
        if n_rows > MAX_TIMED_ROWS:
            return self.max_threads
        timings = self.timings.get(n_rows)
        if self.max_threads == 1 or timings is None:
            return 1
        timings.backoff -= 1
        return self.max_threads if timings.backoff < 0 else 1

    def took(self, n_rows: int, n_threads: int, seconds: float) -> None:
        """Record the duration of a pass."""
        if n_rows > MAX_TIMED_ROWS:
            return
        if n_threads == 1:
            self.timings.setdefault(n_rows, Timings(seconds)).alone = seconds
            return
        timings = self.timings[n_rows]
        if seconds < timings.alone:
            timings.n_slow = max(timings.n_slow - 1, 0)
            if timings.backoff < -FIRST_BACKOFF:
                timings.next_backoff = FIRST_BACKOFF
        else:
            timings.n_slow += 1
            if timings.n_slow > 1 or seconds > 4 * timings.alone:
                timings.backoff, timings.next_backoff = timings.next_backoff, min(2 * timings.next_backoff, MAX_BACKOFF)
                timings.n_slow = 0


class Follower:
    """A thread that takes part in passes. It spins while passes follow each other closely, and sleeps otherwise."""

    def __init__(self, arguments: tuple[Shape, Weights, Memory], thread: int) -> None:
        self.arguments, self.number = arguments, thread
        self.control = arguments[2].control
        self.is_asleep = False
        self.called = threading.Event()
        threading.Thread(target=self.run, name="forward passes", daemon=True).start()

    def wake(self) -> None:
        """Wake the thread if it is asleep. Call this after announcing a pass."""
        if self.is_asleep:
            self.called.set()

    def run(self) -> None:
        seen = 0
        while seen >= 0:
            # Set before the last check for an announcement, so that no call to wake() is missed.
            self.is_asleep = True
            if self.control[PASS] == seen:
                self.called.wait()
            self.called.clear()
            self.is_asleep = False
            seen = take_part(self.number, seen, *self.arguments)
