"""Products in tiles (AMX): the code that runs on processors that have them, with an emulation of the instructions."""

import ctypes
import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest
import torch
from llvmlite import ir
from numba.core import cgutils
from numba.core.registry import CPUDispatcher
from numpy.typing import NDArray
from torch import Tensor

from helpers.models import prompt_ids, tiny_gpt
from model.config import RotaryConfig
from model.gpt import GPT
from model.kernels import compiled, forward, int8, linear, pack, products, tiles
from model.kernels.compiled import CompiledGPT
from model.kernels.panels import TileScratch
from model.kernels.sums import has_pair_products

Array = NDArray[Any]
TINY = np.finfo(np.float32).tiny
KINDS = ("bfloat16 in tiles", "int8 in tiles")
SHAPES: list[dict[str, Any]] = [
    {"n_layer": 3, "n_embd": 96, "n_head": 3},
    {
        "n_head": 6,
        "n_kv_head": 2,
        "n_embd": 42,
        "head_dim": 10,
        "n_inner": 70,
        "rotary": RotaryConfig(n_dim=10),
        "norm": "RMSNorm",
        "activation_function": "silu",
        "gated_mlp": True,
        "tie_word_embeddings": False,
    },
]


class Tiles:
    """The tiles of a thread."""

    def __init__(self) -> None:
        self.rows, self.colsb, self.data = [0] * 8, [0] * 8, np.zeros((8, 16, 64), np.uint8)

    def part(self, tile: int) -> Array:
        """The configured part of a tile."""
        assert self.rows[tile], f"tile {tile} is not configured"
        return self.data[tile, : self.rows[tile], : self.colsb[tile]]


class Emulator:
    """The instructions on tiles as in Intel's manual, called by compiled code in their place."""

    def __init__(self) -> None:
        self.by_thread: defaultdict[int, Tiles] = defaultdict(Tiles)
        self.ignored: set[str] = set()  # instructions that do nothing
        self.errors: list[BaseException] = []
        self.forbidden: list[tuple[int, int]] = []  # memory that may not be read
        self.counts: defaultdict[str, int] = defaultdict(int)
        number, address, size = ctypes.c_int8, ctypes.c_void_p, ctypes.c_int64
        self.callbacks = [
            self.offer(self.ldtilecfg, address),
            self.offer(self.tilerelease),
            self.offer(self.tilezero, number),
            self.offer(self.tileloadd64, number, address, size),
            self.offer(self.tilestored64, number, address, size),
            self.offer(self.tdpbf16ps, number, number, number),
            self.offer(self.tdpbsud, number, number, number),
        ]

    def offer(self, instruction: Callable[..., None], *kinds: Any) -> Any:
        def run(*operands: Any) -> None:
            self.counts[instruction.__name__] += 1
            try:
                if instruction.__name__ not in self.ignored:
                    instruction(*operands)
            except BaseException as error:
                self.errors.append(error)

        callback = ctypes.CFUNCTYPE(None, *kinds)(run)
        for tile in range(8):
            llvm.add_symbol(f"emulated.{instruction.__name__}.{tile}", ctypes.cast(callback, ctypes.c_void_p).value)
        return callback

    @property
    def tiles(self) -> Tiles:
        return self.by_thread[threading.get_ident()]

    def ldtilecfg(self, address: int) -> None:
        config = np.frombuffer(ctypes.string_at(address, 64), np.uint8)
        self.by_thread[threading.get_ident()] = tiles = Tiles()
        tiles.rows, tiles.colsb = config[48:56].tolist(), config[16:32].view(np.uint16).tolist()
        assert config[0] == 1 and not config[1:16].any() and not config[32:48].any() and not config[56:].any()
        assert all(rows <= 16 and colsb <= 64 for rows, colsb in zip(tiles.rows, tiles.colsb, strict=True))
        assert all((rows == 0) == (colsb == 0) for rows, colsb in zip(tiles.rows, tiles.colsb, strict=True))

    def tilerelease(self) -> None:
        del self.by_thread[threading.get_ident()]

    def tilezero(self, tile: int) -> None:
        self.tiles.part(tile)[:] = 0

    def tileloadd64(self, tile: int, address: int, stride: int) -> None:
        for i, row in enumerate(self.tiles.part(tile)):
            start, end = address + i * stride, address + i * stride + len(row)
            assert all(end <= first or start >= last for first, last in self.forbidden), "read outside an array"
            row[:] = np.frombuffer(ctypes.string_at(start, len(row)), np.uint8)

    def tilestored64(self, tile: int, address: int, stride: int) -> None:
        for i, row in enumerate(self.tiles.part(tile)):
            ctypes.memmove(address + i * stride, row.tobytes(), len(row))

    def operands(self, sums: int, a: int, b: int) -> tuple[Array, Array, Array]:
        """Rows of bytes of the sums; ``(M, K, 4)`` and ``(K, N, 4)`` bytes that are multiplied."""
        total, rows, columns = (self.tiles.part(tile) for tile in (sums, a, b))
        assert len({sums, a, b}) == 3 and total.shape == (len(rows), columns.shape[1])
        assert rows.shape[1] == 4 * len(columns)
        return total, rows.reshape(len(rows), -1, 4), columns.reshape(len(columns), -1, 4)

    def tdpbf16ps(self, sums: int, a: int, b: int) -> None:
        """Even and odd numbers are added up separately; numbers too small for the normal format are 0."""
        total, *factors = self.operands(sums, a, b)
        rows, columns = (flushed((part.view(np.uint16).astype(np.uint32) << 16).view(np.float32)) for part in factors)
        with np.errstate(all="ignore"):  # nothing is known about rows that are not used
            products = flushed((rows[:, :, None] * columns[None]).sum(1))
            found = flushed(total.view(np.float32) + flushed(products[..., 0] + products[..., 1]))
        total[:] = found.view(np.uint8)

    def tdpbsud(self, sums: int, a: int, b: int) -> None:
        total, rows, columns = self.operands(sums, a, b)
        products = rows.view(np.int8).astype(np.int32)[:, :, None] * columns.astype(np.int32)[None]
        total[:] = (total.view(np.int32) + products.sum((1, 3), dtype=np.int32)).view(np.uint8)


def flushed(x: Array) -> Array:
    return np.where(np.abs(x) < TINY, np.float32(0), x)


def anew(function: Any, made: dict[Any, Any]) -> Any:
    """A function to be compiled again, with those that it calls, if it depends on the kind of products."""
    if not isinstance(function, CPUDispatcher):
        return function
    code = function.py_func.__code__
    if not {"memory", "scratch", "configure", "linear_in_tiles"} & {*code.co_varnames, *code.co_names}:
        return function
    if function not in made:
        known = function.py_func.__globals__
        names = {name: anew(known[name], made) for name in code.co_names if name in known}
        options = {name: value for name, value in function.targetoptions.items() if name != "nopython"}
        made[function] = numba.njit(**options)(FunctionType(code, names | {"__name__": __name__}, function.__name__))
    return made[function]


def call_emulator(builder: Any, name: str, *operands: Any) -> None:
    """``tiles.instruct`` for the emulator.

    Each tile has functions of its own, so that LLVM never merges calls into one whose tile is no constant.
    """
    function = ir.FunctionType(ir.VoidType(), [operand.type for operand in operands])
    tile = operands[0].constant if operands and isinstance(operands[0], ir.Constant) else 0
    builder.call(cgutils.get_or_insert_function(builder.module, function, f"emulated.{name}.{tile}"), operands)


@pytest.fixture(scope="module")
def emulation() -> Iterator[Emulator]:
    """While it lasts, the loops that multiply in tiles are compiled again and call the emulator."""
    emulator, made = Emulator(), dict[Any, Any]()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tiles, "instruct", call_emulator)
        # A new type, so that Numba confuses emulated code neither with the real one nor with an earlier emulator's.
        patched.setattr(pack, "TileScratch", type("EmulatedScratch", (TileScratch,), {}))
        for function in (linear.linear_in_either, tiles.linear_in_tiles):  # the caller first
            patched.setattr(linear, function.__name__, anew(function, made))
        patched.setattr(products, "project_alone", anew(products.project_alone, made))
        patched.setattr(compiled, "take_part", anew(forward.take_part, made))
        yield emulator


@pytest.fixture
def emulator(emulation: Emulator) -> Iterator[Emulator]:
    emulation.counts.clear()
    emulation.errors.clear()
    emulation.forbidden.clear()
    emulation.ignored.clear()
    yield emulation
    assert not emulation.errors
    assert emulation.counts["tilerelease"] == emulation.counts["ldtilecfg"]


class Case:
    """A matrix with scales and biases, and rows that it multiplies."""

    def __init__(self, kind: str, n: int, d_in: int, d_out: int) -> None:
        rng = np.random.default_rng(n * d_in + d_out)
        self.kind, self.x = kind, rng.standard_normal((n, d_in)).astype(np.float32)
        self.weights = torch.from_numpy(rng.standard_normal((d_out, d_in)).astype(np.float32)).bfloat16()
        self.scale, self.bias = np.ones(d_out, np.float32), rng.standard_normal(d_out).astype(np.float32)
        if kind.startswith("int8"):
            self.weights = torch.from_numpy(rng.integers(-127, 128, (d_out, d_in)).astype(np.int8))
            self.scale = rng.random(d_out).astype(np.float32) / 50

    def run(self, kind: str, first: int = 0, *, add: bool = False, n_threads: int = 1, guard: Any = None) -> Array:
        """The product of the rows from ``first`` on, which is added to ones. ``guard`` copies what is read."""
        (matrix, x_rows, *sizes, out, _, _, _, _), found = products.prepared(kind, self.weights, self.x[first:])
        matrix.scale[: len(self.scale)], matrix.bias[: len(self.bias)] = self.scale, self.bias
        group = 4 if self.weights.dtype == torch.int8 else 2
        scratch = pack.scratch_for(group, *sizes, n_threads, **products.KINDS[kind])
        if guard:
            matrix = matrix._replace(weights=guard(matrix.weights))
            scratch = scratch._replace(rounded=scratch.rounded._replace(numbers=guard(scratch.rounded.numbers)))
        out.numbers[:] = 1
        for thread in range(n_threads):
            products.project_alone(matrix, x_rows, *sizes, out, add, scratch, thread, n_threads)
        return found.copy()

    def expected(self) -> Array:
        """In float64, with inputs rounded to bfloat16."""
        return torch.from_numpy(self.x).bfloat16().double().numpy() @ self.weights.double().numpy().T + self.bias


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("n", "d_in", "d_out"),
    [
        (1, 2, 1),
        (3, 64, 33),
        (4, 6, 64),
        (15, 38, 150),
        (16, 128, 96),
        (17, 100, 32),
        (32, 62, 70),
        (33, 66, 65),
        (40, 30, 31),
    ],
)
def test_products_are_right(emulator: Emulator, kind: str, n: int, d_in: int, d_out: int) -> None:
    case = Case(kind, n, d_in, d_out)
    found = case.run(kind)
    if kind.startswith("int8"):
        assert (found == case.run("int8")).all() and (case.run(kind, add=True) == case.run("int8", add=True)).all()
    else:
        assert np.abs(found - case.expected()).max() < 1e-4
        assert np.abs(case.run(kind, add=True) - case.expected() - 1).max() < 1e-4
    assert (case.run(kind, n_threads=3) == found).all()
    assert (emulator.counts["tdpbsud"] + emulator.counts["tdpbf16ps"] > 0) == (n > 3 or kind != "int8 in tiles")


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_bit_identical_in_any_batch(emulator: Emulator, kind: str) -> None:
    case = Case(kind, 40, 38, 150)
    together = case.run(kind)
    for first in range(40):
        assert (case.run(kind, first) == together[first:]).all(), first


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 16, 17, 40])
def test_no_tile_reads_outside_an_array(emulator: Emulator, kind: str, n: int) -> None:
    def guard(array: Array) -> Array:
        around = np.zeros(array.nbytes + 2 * 8192, np.uint8)
        start = around.ctypes.data
        emulator.forbidden += [(start, start + 8192), (start + 8192 + array.nbytes, start + len(around))]
        inside = around[8192 : 8192 + array.nbytes].view(array.dtype).reshape(array.shape)
        inside[:] = array
        return inside

    case = Case(kind, n, 38, 40)
    assert (case.run(kind, guard=guard) == case.run(kind)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_no_rows_take_no_tiles(emulator: Emulator, kind: str) -> None:
    """As in the last layer, if no logits are needed; a configuration without rows would be refused."""
    case = Case(kind, 4, 38, 40)
    (matrix, rows, _, *others), _ = products.prepared(kind, case.weights, case.x)
    products.project_alone(matrix, rows, 0, *others)
    assert not emulator.counts


def small_gpt(kind: str, shape: dict[str, Any]) -> GPT:
    gpt = tiny_gpt(**shape)
    if kind.startswith("int8"):
        int8.quantize(gpt)
        return gpt
    return gpt.bfloat16()


def read_all(loops: CompiledGPT, ids: list[int]) -> Tensor:
    loops.read([(token, 0, i, True, -1) for i, token in enumerate(ids)])
    return loops.logits[: len(ids)].clone()


@pytest.mark.release  # compiles the whole forward pass for each kind
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=["GPT-2", "Llama"])
def test_a_model_in_tiles(emulator: Emulator, kind: str, shape: dict[str, Any]) -> None:
    """Its logits are those of the products in vectors, and the same to the last bit in any batch and on two threads."""
    gpt, ids = small_gpt(kind, shape), prompt_ids(24)
    in_vectors = CompiledGPT(gpt, 1, 32, in_pairs=kind.startswith("bfloat16") and has_pair_products())
    loops = CompiledGPT(gpt, 4, 32, max_threads=2, **products.KINDS[kind])
    assert loops.products == kind
    expected, found = read_all(in_vectors, ids), read_all(loops, ids)
    if kind.startswith("int8"):
        assert torch.equal(found, expected)
    else:
        gpt.float()
        exact = gpt(torch.tensor([ids])).logits[0]
        assert (found - exact).abs().mean() < 0.02 * exact.std()
    for n_threads in (1, 2):
        loops.threads.choose = lambda _rows, n=n_threads: n  # type: ignore[method-assign, misc]
        for i, token in enumerate(ids):
            others = [((token + slot) % 65, slot, i, False, -1) for slot in (0, 1, 3) if i % 3]
            loops.read([*others[:2], (token, 2, i, True, -1), *others[2:]])
            assert torch.equal(loops.logits[0], found[i])
    loops.read([(token, 0, i, i == 23, -1) for i, token in enumerate(ids)])
    assert torch.equal(loops.logits[0], found[23])
    loops.read([(token, 0, i, False, -1) for i, token in enumerate(ids)])
    loops.close()


def test_llvm_generates_the_instructions(emulator: Emulator) -> None:
    """For the first processors with tiles: the emulated calls, under the names that LLVM knows."""
    target = llvm.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine(cpu="sapphirerapids")
    instructions = set[str]()
    for kind in KINDS:
        Case(kind, 16, 64, 64).run(kind)
    for code in linear.linear_in_tiles.inspect_llvm().values():
        lines = re.sub(r"emulated\.(\w+)\.\d", r"llvm.x86.\1", code).splitlines()
        declared = {line for line in lines if line.startswith("declare")}
        code = "\n".join([line for line in lines if line not in declared] + sorted(declared))
        assembly = target.emit_assembly(llvm.parse_assembly(code))
        instructions |= {line.split()[0] for line in assembly.splitlines() if "tmm" in line}
        assert re.search(r"\tldtilecfg\t", assembly) and re.search(r"\ttilerelease\n", assembly)
    assert instructions == {"tilezero", "tileloadd", "tilestored", "tdpbf16ps", "tdpbsud"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_check_accepts_only_right_products(emulator: Emulator, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "is_permitted", lambda: True)
    products.check(kind)
    assert products.seconds(kind) > 0
    emulator.ignored |= {"tdpbf16ps", "tdpbsud"}
    with pytest.raises(ValueError, match=f"wrong {kind}"):
        products.check(kind)
    monkeypatch.setattr(products, "is_permitted", lambda: False)
    with pytest.raises(ValueError, match="does not permit tiles"):
        products.check(kind)
