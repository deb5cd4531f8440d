"""Code generation for the sums of products in ``panels``: of floats, pairs of bfloat16, or groups of 8-bit integers."""

import functools
import platform
from typing import Any

from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import types
from numba.core import cgutils

from ..seams.numba import BFloat
from .intrinsics import FLOATS, HALF, INT8, INT16, INT32, INT64, INTS, LANES, load, splat

PAIR = 2  # bfloat16 weights stored as one number
GROUP = 4  # int8 weights stored as one number
UNSIGNED = 128  # added to an int8 weight to make it unsigned
SMALL, SHORTS = ir.VectorType(INT8, LANES * GROUP), ir.VectorType(INT16, LANES * PAIR)
BFLOATS = ir.VectorType(BFloat(), LANES * PAIR)


def has_feature(name: str) -> bool:
    """Whether this is an x86 processor with the feature that LLVM calls ``name``."""
    return platform.machine().lower() in {"x86_64", "amd64"} and bool(get_host_cpu_features().get(name))


@functools.cache
def has_pair_products() -> bool:
    """Whether this processor adds the products of bfloat16 in one instruction."""
    return has_feature("avx512bf16")


class FloatSums:
    """Code generation for float32 sums of products with weights stored as ``kind``."""

    zero = ir.Constant(FLOATS, [0.0] * LANES)

    def __init__(self, kind: types.Type) -> None:
        self.kind = kind
        self.group = PAIR if kind == types.uint32 else 1  # inputs per stored number

    def read_weights(self, builder: Any, address: Any) -> list[Any]:
        """The weights in ``LANES`` stored numbers as float32: a vector for each input of the group."""
        if self.kind == types.float32:
            return [load(builder, address, FLOATS)]
        if self.kind == types.int16:
            return [builder.fpext(load(builder, address, ir.VectorType(HALF, LANES)), FLOATS)]
        if self.kind == types.uint32:  # a bfloat16 is the upper half of a float32
            pairs = load(builder, address, INTS)
            first = builder.shl(pairs, ir.Constant(INTS, [16] * LANES))
            second = builder.and_(pairs, ir.Constant(INTS, [0xFFFF0000] * LANES))
            return [builder.bitcast(first, FLOATS), builder.bitcast(second, FLOATS)]
        raise TypeError(f"weights of type {self.kind}")

    def read_inputs(self, builder: Any, address: Any) -> list[Any]:
        """The inputs of a group, each in all lanes."""
        addresses = [builder.gep(address, [ir.Constant(INT64, i)]) for i in range(self.group)]
        return [splat(builder, builder.load(address)) for address in addresses]

    def add(self, builder: Any, total: Any, weight: Any, number: Any) -> Any:
        """``total + weight * number``, rounded once."""
        function = ir.FunctionType(FLOATS, [FLOATS] * 3)
        call = cgutils.get_or_insert_function(builder.module, function, f"llvm.fma.v{LANES}f32")
        return builder.call(call, [weight, number, total])


class PairSums:
    """Code generation for float32 sums of products of bfloat16, ``PAIR`` at a time."""

    group, zero = PAIR, ir.Constant(FLOATS, [0.0] * LANES)

    def read_weights(self, builder: Any, address: Any) -> list[Any]:
        return [load(builder, address, INTS)]

    def read_inputs(self, builder: Any, address: Any) -> list[Any]:
        return [splat(builder, builder.load(builder.bitcast(address, INT32.as_pointer())))]

    def add(self, builder: Any, total: Any, weight: Any, number: Any) -> Any:
        """``total`` plus, in each lane, the products of a pair of weights and a pair of inputs."""
        function = ir.FunctionType(FLOATS, [FLOATS, BFLOATS, BFLOATS])
        call = cgutils.get_or_insert_function(builder.module, function, "llvm.x86.avx512bf16.dpbf16ps.512")
        return builder.call(call, [total, builder.bitcast(weight, BFLOATS), builder.bitcast(number, BFLOATS)])


class IntegerSums:
    """Code generation for sums of products of 8-bit integers, ``GROUP`` at a time: unsigned weights, signed inputs."""

    group, zero, is_offset = GROUP, ir.Constant(INTS, [0] * LANES), True  # by ``UNSIGNED`` times the inputs

    def read_weights(self, builder: Any, address: Any) -> list[Any]:
        return [load(builder, address, SMALL)]

    def read_inputs(self, builder: Any, address: Any) -> list[Any]:
        group = builder.load(builder.bitcast(address, INT32.as_pointer()))
        return [builder.bitcast(splat(builder, group), SMALL)]

    def add(self, builder: Any, total: Any, weight: Any, number: Any) -> Any:
        """``total`` plus, in each lane, ``GROUP`` products."""
        wide = ir.VectorType(INT32, LANES * GROUP)
        products = builder.mul(builder.zext(weight, wide), builder.sext(number, wide))
        for i in range(GROUP):
            lanes = ir.Constant(INTS, list(range(i, LANES * GROUP, GROUP)))
            total = builder.add(total, builder.shuffle_vector(products, products, lanes))
        return total

    def in_floats(self, builder: Any, total: Any, offset: Any, scale: Any, scales: Any) -> Any:
        """``total`` minus the row's offset, times the scale of the row and the scales of the outputs."""
        if self.is_offset:
            total = builder.sub(total, splat(builder, builder.load(offset)))
        scaled = builder.fmul(builder.sitofp(total, FLOATS), splat(builder, builder.load(scale)))
        return builder.fmul(scaled, load(builder, scales, FLOATS))


class SumsOfFour(IntegerSums):
    """Sums of integer products by an instruction that adds up a group of them (VNNI), for vectors of ``bits``."""

    def __init__(self, bits: int) -> None:
        self.bits = bits

    def add(self, builder: Any, total: Any, weight: Any, number: Any) -> Any:
        return in_parts(builder, f"llvm.x86.avx512.vpdpbusd.{self.bits}", self.bits, INT32, total, weight, number)


class SumsOfTwo(IntegerSums):
    """Sums of integer products by AVX2, whose instruction adds up pairs in 16 bits, which must not overflow.

    Weights of up to 255 would overflow. So they become signed, and take over the signs of the inputs, whose magnitudes
    take their place as unsigned integers: a pair of products is then at most ``2 * 127 * 127``.
    """

    is_offset, bits = False, 256
    sign, ones = ir.Constant(SMALL, [UNSIGNED - 256] * LANES * GROUP), ir.Constant(SHORTS, [1] * LANES * PAIR)

    def read_weights(self, builder: Any, address: Any) -> list[Any]:
        return [builder.xor(load(builder, address, SMALL), self.sign)]

    def add(self, builder: Any, total: Any, weight: Any, number: Any) -> Any:
        is_negative = builder.icmp_signed("<", number, ir.Constant(SMALL, None))
        magnitude = builder.select(is_negative, builder.neg(number), number)
        signed = self.call(builder, "psign.b", INT8, weight, number)
        pairs = self.call(builder, "pmadd.ub.sw", INT16, magnitude, signed)
        return builder.add(total, self.call(builder, "pmadd.wd", INT32, pairs, self.ones))

    def call(self, builder: Any, name: str, kind: Any, *vectors: Any) -> Any:
        return in_parts(builder, f"llvm.x86.avx2.{name}", self.bits, kind, *vectors)


def in_parts(builder: Any, name: str, bits: int, kind: Any, *vectors: Any) -> Any:
    """Call LLVM's function ``name``, which takes vectors of ``bits`` and returns one of ``kind``, for each part."""
    n_parts, found = LANES * INT32.width // bits, None
    for i in range(n_parts):
        parts = [part_of(builder, vector, i, n_parts) for vector in vectors]
        function = ir.FunctionType(ir.VectorType(kind, bits // kind.width), [part.type for part in parts])
        call = cgutils.get_or_insert_function(builder.module, function, name)
        part = builder.call(call, parts)
        found = part if found is None else joined(builder, found, part)
    return found


def part_of(builder: Any, vector: Any, index: int, n_parts: int) -> Any:
    size = vector.type.count // n_parts
    lanes = list(range(index * size, (index + 1) * size))
    return builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(INT32, size), lanes))


def joined(builder: Any, lower: Any, upper: Any) -> Any:
    size = 2 * lower.type.count
    return builder.shuffle_vector(lower, upper, ir.Constant(ir.VectorType(INT32, size), list(range(size))))


def integer_sums() -> IntegerSums:
    """Code generation with the best instruction of this processor."""
    if has_feature("avx512vnni"):
        return SumsOfFour(512)
    if has_feature("avxvnni"):
        return SumsOfFour(256)
    return SumsOfTwo() if has_feature("avx2") else IntegerSums()
