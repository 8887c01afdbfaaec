"""Bytes: words that are made of them, parts of words, and floats between the limits of eight bits, each by one word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IndexType, f32, i8, i32, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.hints import isa

from mlirt.codegen.python_expressions import literal
from mlirt.codegen.python_source import PythonSource
from mlirt.dialects.kernel.buffers import Memory
from mlirt.dialects.kernel.core import LoadOp, StoreOp, YieldOp
from mlirt.dialects.tensor_types import element_type

_BITS = 8
_INT8 = (element_type("int8"), element_type("uint8"))
_WORDS: Mapping[Attribute, int] = {i32: 32, i64: 64}
_LIMITS = {(-128.0, 127.0): "saturated_int8({})", (0.0, 255.0): "bits_as_int8(saturated_uint8({}))"}
_MOVES = (arith.ConstantOp, arith.OrIOp, arith.ShLIOp, arith.ShRSIOp, arith.ExtUIOp, arith.TruncIOp, arith.BitcastOp)


class ByteSource(PythonSource):
    """Writes chains of scalar ops around bytes as words; an op inside of such a chain has no text of its own."""

    moves_int8 = False
    """Whether what is written is a loop over several vectors of bytes; see `moves_int8`."""

    def store_bytes(self, op: StoreOp, place: str) -> None:
        """Store words that are made of bytes, or bytes."""
        parts = _bytes_of(op.value)
        if parts is None:
            self.line(f"store({place}, {self.text(op.value)})")
        else:
            self.line(f"store_bytes_{len(parts)}({place}, {', '.join(self.texts(parts))})")

    def load_bytes(self, op: LoadOp, place: str, lanes: int) -> None:
        """Load bytes, or words of which bytes are taken."""
        self.define(op.result, f"{'load' if is_bytes(op.buffer) else 'load_bytes'}({place}, {lanes})")

    def arith_ori(self, op: arith.OrIOp) -> None:
        if not self.moves_int8:
            self._write_expression(op)

    def arith_trunci(self, op: arith.TruncIOp) -> None:
        value, taken = _saturates(op), _byte_taken(op)
        if value is not None:
            limits = _limits(op.input)
            assert limits is not None
            self.define(op.result, _LIMITS[limits[1:]].format(self.text(value)))
        elif self.moves_int8 and taken is not None:
            word, number = taken
            text = f"byte_of({self.text(word)}, {number})"
            self.define(op.result, text if op.result.type == i8 else f"bits_as_uint8({text})")
        else:
            self._write_expression(op)

    def arith_maximumf(self, op: arith.MaximumfOp) -> None:
        self._unless_saturated(op)

    def arith_minimumf(self, op: arith.MinimumfOp) -> None:
        self._unless_saturated(op)

    def arith_fptosi(self, op: arith.FPToSIOp) -> None:
        self._unless_saturated(op)

    def _unless_saturated(self, op: Operation) -> None:
        if not _is_inside_saturation(op):
            self._write_expression(op)


def moves_int8(block: Block) -> bool:
    """Whether all that a loop does is to make words of bytes that lie apart, or bytes of words, in other memory."""
    ops = list(block.ops)
    stores = [op for op in ops if isinstance(op, StoreOp)]
    if any(op.buffer in {store.buffer for store in stores} for op in ops if isinstance(op, LoadOp)):
        return False
    words = [_bytes_of(op.value) for op in stores]
    parts = [_byte_of_stored(op.value) for op in stores]
    known = all(
        isinstance(op, (LoadOp, StoreOp, YieldOp, *_MOVES)) or _gives_an_index(op) for op in ops
    )
    return known and bool(stores) and (None not in words or None not in parts)


def _gives_an_index(op: Operation) -> bool:
    return bool(op.results) and isinstance(op.results[0].type, IndexType)


def is_bytes(memory: SSAValue) -> bool:
    """Whether the elements of memory are integers of eight bits."""
    return isa(memory.type, Memory) and memory.type.element_type in _INT8


# --- words of bytes


def _bytes_of(word: SSAValue) -> Sequence[SSAValue] | None:
    """The bytes that a word is made of by `extui`, `shli` and `ori`, the lowest first; None for other words."""
    width = _WORDS.get(word.type)
    if width is None or not isinstance(word.owner, arith.OrIOp):
        return None
    found: dict[int, SSAValue] = {}
    waiting = [word]
    while waiting:
        owner, shift = waiting.pop().owner, 0
        if isinstance(owner, arith.OrIOp):
            waiting += [owner.lhs, owner.rhs]
            continue
        if isinstance(owner, arith.ShLIOp):
            owner, shift = owner.lhs.owner, literal(owner.rhs)
        if not isinstance(owner, arith.ExtUIOp) or owner.input.type != i8 or shift is None or shift in found:
            return None
        found[shift] = owner.input
    shifts = range(0, width, _BITS)
    return [found[shift] for shift in shifts] if sorted(found) == list(shifts) else None


def _byte_taken(op: arith.TruncIOp) -> tuple[SSAValue, int] | None:
    """The word and the number of its byte that an op gives."""
    if op.result.type not in _INT8:
        return None
    owner = op.input.owner
    if not isinstance(owner, arith.ShRSIOp):
        return op.input, 0
    shift = literal(owner.rhs)
    return None if shift is None or shift % _BITS else (owner.lhs, shift // _BITS)


def _byte_of_stored(value: SSAValue) -> tuple[SSAValue, int] | None:
    return _byte_taken(value.owner) if isinstance(value.owner, arith.TruncIOp) else None


# --- floats as bytes


def _limits(value: SSAValue) -> tuple[SSAValue, float, float] | None:
    """What an int32 is between two limits, and these, where it is a float32 that is known to lie between them."""
    owner = value.owner
    if not isinstance(owner, arith.FPToSIOp) or owner.input.type != f32 or owner.result.type != i32:
        return None
    limits: dict[type[Operation], float] = {}
    inner = owner.input
    while isinstance(inner.owner, arith.MaximumfOp | arith.MinimumfOp) and type(inner.owner) not in limits:
        limit = inner.owner.rhs.owner
        if not isinstance(limit, arith.ConstantOp) or not isinstance(limit.value, FloatAttr):
            return None
        limits[type(inner.owner)] = limit.value.value.data
        inner = inner.owner.lhs
    return (inner, limits[arith.MaximumfOp], limits[arith.MinimumfOp]) if len(limits) == 2 else None


def _saturates(op: arith.TruncIOp) -> SSAValue | None:
    """The float of which an op gives the nearest of the numbers of eight bits, toward zero."""
    limits = _limits(op.input)
    return None if op.result.type != i8 or limits is None or limits[1:] not in _LIMITS else limits[0]


def _is_inside_saturation(op: Operation) -> bool:
    """Whether the only reader of an op, or the only one of that, is an op that saturates."""
    readers = [use.operation for use in op.results[0].uses]
    if len(readers) != 1:
        return False
    if isinstance(readers[0], arith.TruncIOp):
        return isinstance(op, arith.FPToSIOp) and _saturates(readers[0]) is not None
    is_between = isinstance(readers[0], arith.MaximumfOp | arith.MinimumfOp | arith.FPToSIOp)
    return is_between and op.results[0] is readers[0].operands[0] and _is_inside_saturation(readers[0])
