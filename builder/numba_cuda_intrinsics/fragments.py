"""Fragments: the registers of one thread, as tuples of one type. One word moves or combines all of them.

numba's front end takes most of the time of a compilation, and that grows with the number of operations in the source:
so what is unrolled is unrolled here, behind one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlirt.builder.numba_cuda_intrinsics.instructions import (
    F32,
    GLOBAL,
    I8,
    I16,
    I32,
    I64,
    SCALARS,
    SIZES,
    ir,
    llvm_type,
    maker,
    pack,
    ptx,
    unpack,
    word,
)
from mlirt.builder.numba_cuda_intrinsics.untyped import types

_MAX_ACCESS_BYTES = 16  # bytes of the widest access


@maker
def fill_fragment(type_name: str, count: int) -> Any:
    """`word(x)`: `count` times `x`."""
    type_ = SCALARS[type_name]

    def emit(builder: Any, value: Any) -> Any:
        return pack(builder, llvm_type(type_), [value] * count)

    return word(types.UniTuple(type_, count), [type_], emit)


@maker
def fragment(type_name: str, count: int) -> Any:
    """`word(x0, x1, ..)`: a fragment of these."""
    type_ = SCALARS[type_name]

    def emit(builder: Any, *values: Any) -> Any:
        return pack(builder, llvm_type(type_), values)

    return word(types.UniTuple(type_, count), [type_] * count, emit)


@maker
def outer_product(rows: int, columns: int, *, left: tuple[int, int] = (0, 1), right: tuple[int, int] = (0, 1)) -> Any:
    """`word(accumulator, left, right)`: each accumulator plus the product of its row's and its column's element.

    `left` and `right`: the first element of such an operand that takes part, and how far apart these are.
    """
    counts = rows * left[1], columns * right[1]
    accumulator, a_type, b_type = (types.UniTuple(types.float32, n) for n in (rows * columns, *counts))

    def emit(builder: Any, accumulators: Any, a: Any, b: Any) -> Any:
        values = unpack(builder, accumulators, rows * columns)
        a, b = unpack(builder, a, counts[0])[left[0] :: left[1]], unpack(builder, b, counts[1])[right[0] :: right[1]]
        name = "llvm.fma.f32"
        fma = builder.module.globals.get(name) or ir.Function(
            builder.module, ir.FunctionType(F32, [F32, F32, F32]), name
        )
        for i in range(rows):
            # Every other row backwards: neighbouring products share an operand.
            for j in range(columns) if i % 2 == 0 else reversed(range(columns)):
                values[i * columns + j] = builder.call(fma, [a[i], b[j], values[i * columns + j]])
        return pack(builder, F32, values)

    return word(accumulator, [accumulator, a_type, b_type], emit)


class _Places:
    """Which memory the elements of a fragment lie in, in groups that one instruction moves."""

    def __init__(self, type_name: str, offsets: Sequence[int], group: int) -> None:
        self.type, self.size = SCALARS[type_name], SIZES[type_name]
        self.element = llvm_type(self.type)
        self.group, self.bytes = group, group * self.size
        # What one access moves, as words of up to 32 bits.
        self.words = max(self.bytes // 4, 1)
        self.word = ir.IntType(8 * self.bytes // self.words)
        self.offsets = [offsets[start] for start in range(0, len(offsets), self.group)]
        self.count = len(offsets)

    def addresses(self, builder: Any, pointer: Any, index: Any, stride: Any) -> list[Any]:
        """A pointer to bytes for each group."""
        start = builder.bitcast(pointer, ir.PointerType(I8))
        step = None if stride is None else builder.mul(stride, I64(self.size))
        first = builder.gep(start, [builder.mul(index, I64(self.size))])
        moved = [I64(offset * self.size) if step is None else builder.mul(step, I64(offset)) for offset in self.offsets]
        return [builder.gep(first, [one]) for one in moved]


@maker
def load_fragment(
    type_name: str, offsets: Sequence[int], *, strided: bool = False, guarded: bool = False, group: int = 1
) -> Any:
    """`word(pointer, index[, stride][, valid])`: the elements at `index + offset * stride`, from `valid` on zeros."""
    places = _Places(type_name, offsets, group)

    def emit(builder: Any, pointer: Any, index: Any, *rest: Any) -> Any:
        stride, valid = (rest[0] if strided else None), (rest[-1] if guarded else None)
        values: list[Any] = []
        for number, address in enumerate(places.addresses(builder, pointer, index, stride)):
            if valid is None:
                values += _load(builder, address, places)
            else:
                values += _load_guarded(builder, address, places, valid, number * places.group)
        return pack(builder, places.element, values)

    return word(types.UniTuple(places.type, places.count), _signature(places, strided, guarded), emit)


@maker
def store_fragment(
    type_name: str, offsets: Sequence[int], *, strided: bool = False, guarded: bool = False, group: int = 1
) -> Any:
    """`word(fragment, pointer, index[, stride][, valid])`: write the elements, except those from `valid` on."""
    places = _Places(type_name, offsets, group)

    def emit(builder: Any, value: Any, pointer: Any, index: Any, *rest: Any) -> Any:
        stride, valid = (rest[0] if strided else None), (rest[-1] if guarded else None)
        values = unpack(builder, value, places.count)
        for number, address in enumerate(places.addresses(builder, pointer, index, stride)):
            first = number * places.group
            some = values[first : first + places.group]
            if valid is None:
                _store(builder, address, some, places)
            else:
                with builder.if_then(builder.icmp_signed(">", valid, I64(first))):
                    _store(builder, address, some, places)

    return word(types.void, [types.UniTuple(places.type, places.count), *_signature(places, strided, guarded)], emit)


def _signature(places: _Places, strided: bool, guarded: bool) -> list[Any]:
    return [types.CPointer(places.type), types.int64, *[types.int64] * (strided + guarded)]


def _load(builder: Any, address: Any, places: _Places) -> list[Any]:
    if places.group == 1:
        return [builder.load(builder.bitcast(address, ir.PointerType(places.element)))]
    kind = ir.VectorType(places.word, places.words)
    vector = builder.load(builder.bitcast(address, ir.PointerType(kind)), align=places.bytes)
    return _elements(builder, vector, places)


def _elements(builder: Any, vector: Any, places: _Places) -> list[Any]:
    """The elements in what one access has loaded."""
    vector = builder.bitcast(vector, ir.VectorType(places.word, places.words))
    if places.size == 2 and places.words > 1:
        words = [builder.extract_element(vector, I32(k)) for k in range(places.words)]
        halves = [
            half for word in words for half in ptx(builder, "mov.b32 {$0, $1}, $2;", [I16] * 2, [word], pure=True)
        ]
        return [builder.bitcast(half, places.element) for half in halves]
    if places.size == 1 and places.words > 1:
        words = [builder.extract_element(vector, I32(k)) for k in range(places.words)]
        bits = [builder.trunc(builder.lshr(word, I32(8 * k)), I8) for word in words for k in range(4)]
        return [builder.bitcast(one, places.element) for one in bits]
    elements = builder.bitcast(vector, ir.VectorType(places.element, places.group))
    return [builder.extract_element(elements, I32(k)) for k in range(places.group)]


def _words(builder: Any, values: Sequence[Any], places: _Places) -> Any:
    """Elements as what one access stores.

    Short elements become words by hand: LLVM would store them as such, in several accesses.
    """
    if places.size == 1 and places.words > 1:
        groups = [_vector(builder, places.element, values[first : first + 4]) for first in range(0, len(values), 4)]
        words = [ptx(builder, "mov.b32 $0, $1;", [I32], [builder.bitcast(one, I32)], pure=True)[0] for one in groups]
        return _vector(builder, I32, words)
    if places.size == 2 and places.words > 1:
        bits = [builder.bitcast(value, I16) for value in values]
        pairs = zip(bits[::2], bits[1::2], strict=True)
        words = [ptx(builder, "mov.b32 $0, {$1, $2};", [I32], list(pair), pure=True)[0] for pair in pairs]
        return _vector(builder, I32, words)
    kind = ir.VectorType(places.word, places.words)
    return builder.bitcast(_vector(builder, places.element, values), kind)


def _vector(builder: Any, element: Any, values: Sequence[Any]) -> Any:
    vector = ir.Constant(ir.VectorType(element, len(values)), ir.Undefined)
    for k, value in enumerate(values):
        vector = builder.insert_element(vector, value, I32(k))
    return vector


def _store(builder: Any, address: Any, values: Sequence[Any], places: _Places) -> None:
    if places.group == 1:
        builder.store(values[0], builder.bitcast(address, ir.PointerType(places.element)))
        return
    kind = ir.VectorType(places.word, places.words)
    target = builder.bitcast(address, ir.PointerType(kind))
    builder.store(_words(builder, values, places), target, align=places.bytes)


# The predicated load of an access by its bytes: what it loads, and into which register.
_LOADS = {1: ("u8", "h"), 2: ("u16", "h"), 4: ("u32", "r"), 8: ("u64", "l"), 16: ("v4.u32", "r")}


def _load_guarded(builder: Any, address: Any, places: _Places, valid: Any, first: int) -> list[Any]:
    """Loads under a predicate, without a branch: zero where `first` is not below `valid`."""
    number = builder.ptrtoint(builder.addrspacecast(address, ir.PointerType(I8, GLOBAL)), I64)
    # The comparison is LLVM's, which sees through what `valid` is chosen by; then the word costs no instruction.
    given = builder.zext(builder.icmp_signed(">", valid, I64(first)), I32)
    guard = ".reg .pred p; setp.ne.u32 p, {given}, 0;"
    kind, letter = _LOADS[places.bytes]
    if places.bytes == _MAX_ACCESS_BYTES:
        zeros = " ".join(f"mov.u32 ${k}, 0;" for k in range(4))
        text = f"{{ {guard.format(given='$5')} {zeros} @p ld.global.{kind} {{$0,$1,$2,$3}}, [$4]; }}"
        words = ptx(builder, text, [I32] * 4, [number, given])
        return _elements(builder, _vector(builder, I32, words), places)
    register = {"h": ir.IntType(16), "r": I32, "l": I64}[letter]
    text = f"{{ {guard.format(given='$2')} mov.b{register.width} $0, 0; @p ld.global.{kind} $0, [$1]; }}"
    (loaded,) = ptx(builder, text, [register], [number, given])
    bits = ir.IntType(8 * places.bytes)
    value = builder.trunc(loaded, bits) if bits.width < register.width else loaded
    return [builder.bitcast(value, places.element)] if places.group == 1 else _elements(builder, value, places)
