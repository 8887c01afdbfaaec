"""Fragments: the part of a tile that one thread holds in registers, a rank-1 `vector`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, VectorType
from xdsl.ir import OpResult, SSAValue

from mlirt.dialects.kernel import instruction_fields as fields
from mlirt.dialects.kernel.buffers import SHARED, memory
from mlirt.dialects.kernel.instruction import Instruction, instruction
from mlirt.dialects.kernel.instruction_fields import PURE, READS, WRITES, Rule, Text
from mlirt.dialects.layout import contiguous_width
from mlirt.dialects.tensor_types import byte_width

if TYPE_CHECKING:
    from mlirt.dialects.kernel.interpreter_instruction import Site

_MAX_ACCESS_BYTES = 16  # bytes of an access


@instruction
class FillFragmentOp(Instruction):
    """A fragment whose elements are all the same.

    Example: `%zeros = kernel.fill_fragment %zero : f32 -> vector<64xf32>`
    """

    name = "kernel.fill_fragment"

    value: SSAValue = fields.scalar("T")
    result: OpResult = fields.result(VectorType, length="n")

    syntax = "$value"
    effects = PURE
    cuda = Text("fill_fragment", '"{T}", {n}', hint="fill")

    def __init__(self, value: SSAValue, count: int) -> None:
        self.fill(value, result=VectorType(value.type, [count]))

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        import numpy as np

        return np.repeat(x.value[:, None], x.n, axis=1)


@instruction
class FragmentOp(Instruction):
    """A fragment of these elements.

    Example: `%v = kernel.fragment %a, %b : f32, f32 -> vector<2xf32>`
    """

    name = "kernel.fragment"

    values: Sequence[SSAValue] = fields.scalars()
    result: OpResult = fields.result(VectorType, length="n")

    syntax = "$values"
    effects = PURE
    rules = (
        Rule(
            "there are as many values as elements",
            lambda x: len(x.values) == x.n,
            lambda x: f"{len(x.values)} elements for {x.result}",
        ),
    )

    def __init__(self, values: Sequence[SSAValue]) -> None:
        self.fill(values, result=VectorType(values[0].type, [len(values)]))

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        import numpy as np

        return np.stack(np.broadcast_arrays(*x.values), axis=1)


@instruction
class FragmentElementOp(Instruction):
    """One element of a fragment.

    Example: `%a = kernel.fragment_element %v {position = 3 : i64} : vector<4xf32> -> f32`
    """

    name = "kernel.fragment_element"

    fragment: SSAValue = fields.fragment("T", "n")
    position: IntegerAttr = fields.attribute(converter=fields.number)
    result: OpResult = fields.result(like=lambda x: x.T.type)

    syntax = "$fragment"
    effects = PURE
    rules = (Rule("the position is one of the fragment", lambda x: 0 <= x.position < x.n, "no position {position}"),)

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        return x.fragment[:, x.position]


def _numbers(offsets: Sequence[int]) -> str:
    """A list of numbers, as a range where it is one."""
    steps = {after - before for before, after in pairwise(offsets)}
    if len(offsets) > 2 and len(steps) == 1 and offsets[0] == 0 and (step := steps.pop()) > 0:
        stop = offsets[-1] + step
        return f"range({stop})" if step == 1 else f"range(0, {stop}, {step})"
    return f"({', '.join(map(str, offsets))}{',' if len(offsets) == 1 else ''})"


def _parameters(x: Any) -> str:
    """Which elements an access moves, and how."""
    flags = {"strided": x.stride is not None, "guarded": x.valid is not None}
    chosen = "".join(f", {name}=True" for name, flag in flags.items() if flag)
    chosen += f", group={group}" if (group := x.op.group(x.op.buffer)) > 1 else ""
    return f'"{x.T}", {_numbers(x.offsets)}{chosen}'


def _places(x: Any, site: Site) -> tuple[Any, Any]:
    """The element that each lane accesses for each offset, and whether it does."""
    import numpy as np

    from mlirt.dialects.kernel.interpreter_memory import OutOfBoundsError

    offsets = np.array(x.offsets, np.int64)
    at = x.index[:, None] + offsets * (1 if x.stride is None else x.stride[:, None])
    wanted = np.broadcast_to(True if x.valid is None else np.arange(len(offsets)) < x.valid[:, None], at.shape)
    assert isinstance(site.op, LoadFragmentOp | StoreFragmentOp)
    group = site.op.group(site.op.buffer)
    misaligned = wanted[:, ::group] & (at[:, ::group] % group != 0)
    if misaligned.any():
        first = int(at[:, ::group][misaligned][0])
        bytes_ = group * x.buffer.buffer.data.dtype.itemsize
        raise OutOfBoundsError(f"{site.where}: {bytes_} bytes at element {first} are not {bytes_}-byte aligned")
    return at, wanted


class _FragmentAccess(Instruction):
    """An access of one element per entry of `offsets`: at `index + offset * stride`, stride 1 where none is given.

    With `valid`, only the first so many elements are accessed. `wide` says that groups of consecutive offsets, of up to
    16 bytes and as many as all runs of such offsets allow, are so aligned in memory, and become one access each; of at
    most `together` elements, unless that is 0.
    """

    buffer: SSAValue = fields.memref("T")
    index: SSAValue = fields.index()
    offsets: fields.Numbers = fields.attribute(converter=fields.numbers)
    stride: SSAValue | None = fields.index(default=None, kw_only=True)
    valid: SSAValue | None = fields.index(default=None, kw_only=True)
    wide: BoolAttr = fields.attribute(converter=fields.boolean, default=False, kw_only=True)
    together: IntegerAttr = fields.attribute(converter=fields.number, default=0, kw_only=True)

    def offset_list(self) -> list[int]:
        return [int(offset) for offset in self.offsets.iter_values()]

    def group(self, buffer: SSAValue) -> int:
        """How many elements one access moves."""
        most = _MAX_ACCESS_BYTES // byte_width(memory(buffer).get_element_type())
        most = min(most, self.together.value.data or most)
        return contiguous_width(self.offset_list(), most) if self.wide.value.data else 1


def _has_all(value: str) -> Rule:
    return Rule(
        "there are as many offsets as elements",
        lambda x: len(x.offsets) == x.n,
        lambda x: f"{len(x.offsets)} offsets for {getattr(x, value)}",
    )


@instruction
class LoadFragmentOp(_FragmentAccess):
    """Read one element per offset; those beyond `valid` are zero and not read (in device memory).

    Example: `%v = kernel.load_fragment %x[%i] stride %s valid %n {offsets = array<i64: 0, 4>} : memref<?xf32> -> vector<2xf32>`
    """  # noqa: E501

    name = "kernel.load_fragment"

    result: OpResult = fields.result(VectorType, "T", "n")

    syntax = "$buffer `[` $index `]` (`stride` $stride^)? (`valid` $valid^)?"
    effects = READS
    rules = (
        _has_all("result"),
        Rule(
            "only device memory is read as far as `valid`", lambda x: x.valid is None or x.buffer.memory_space != SHARED
        ),
    )
    cuda = Text("load_fragment", _parameters, hint="load")

    def __init__(
        self,
        buffer: SSAValue,
        index: SSAValue,
        offsets: Sequence[int],
        *,
        stride: SSAValue | None = None,
        valid: SSAValue | None = None,
        wide: bool = False,
        together: int = 0,
    ) -> None:
        flags = {"wide": wide, "together": together}
        result = VectorType(memory(buffer).get_element_type(), [len(offsets)])
        self.fill(buffer, index, offsets, stride=stride, valid=valid, **flags, result=result)

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        return x.buffer.read(*_places(x, site))


@instruction
class StoreFragmentOp(_FragmentAccess):
    """Write one element per offset, except those beyond `valid`.

    Example: `kernel.store_fragment %v, %x[%i] {offsets = array<i64: 0, 1>} : vector<2xf32>, memref<?xf32>`
    """

    name = "kernel.store_fragment"

    value: SSAValue = fields.fragment("T", "n")

    syntax = "$value `,` $buffer `[` $index `]` (`stride` $stride^)? (`valid` $valid^)?"
    effects = WRITES
    rules = (_has_all("value"),)
    cuda = Text("store_fragment", _parameters, hint="store", operands=("value", "buffer", "index", "stride", "valid"))

    def __init__(
        self,
        value: SSAValue,
        buffer: SSAValue,
        index: SSAValue,
        offsets: Sequence[int],
        *,
        stride: SSAValue | None = None,
        valid: SSAValue | None = None,
        wide: bool = False,
        together: int = 0,
    ) -> None:
        flags = {"wide": wide, "together": together}
        self.fill(buffer, index, offsets, value=value, stride=stride, valid=valid, **flags)

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        at, wanted = _places(x, site)
        x.buffer.write(at, x.value, wanted)


@instruction
class OuterProductOp(Instruction):
    """`accumulator[i, j] + left[i] * right[j]` in single precision; the accumulator is row-major.

    An operand may have several lines of the depth for each row or column, one behind the other: `left_lines` and
    `right_lines` tell how many, and each `line` of these takes part that there is (0 of 1, else `line`).

    Example: `%d = kernel.outer_product %c, %a, %b : vector<64xf32>, vector<8xf32>, vector<8xf32> -> vector<64xf32>`
    """

    name = "kernel.outer_product"

    accumulator: SSAValue = fields.fragment(length="n")
    left: SSAValue = fields.fragment(length="rows")
    right: SSAValue = fields.fragment(length="columns")
    line: IntegerAttr = fields.attribute(converter=fields.number, default=0)
    left_lines: IntegerAttr = fields.attribute(converter=fields.number, default=1)
    right_lines: IntegerAttr = fields.attribute(converter=fields.number, default=1)
    result: OpResult = fields.result(VectorType, like="accumulator")

    syntax = "$accumulator `,` $left `,` $right"
    effects = PURE
    rules = (
        Rule(
            "there is an accumulator for each product",
            lambda x: x.n * x.left_lines * x.right_lines == x.rows * x.columns,
            lambda x: f"{x.rows // x.left_lines} x {x.columns // x.right_lines} products for {x.accumulator}",
        ),
        Rule(
            "the line is one of those of each operand that has several",
            lambda x: all(0 <= x.line < count for count in (x.left_lines, x.right_lines) if count > 1),
            "no line {line}",
        ),
    )
    cuda = Text("outer_product", lambda x: _product_parameters(x), hint="multiply")

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        left, right = (
            some[:, x.line if count > 1 else 0 :: count]
            for some, count in ((x.left, x.left_lines), (x.right, x.right_lines))
        )
        products = left[:, :, None] * right[:, None, :]
        return x.accumulator + products.reshape(len(products), -1)


def _product_parameters(x: Any) -> str:
    """Rows and columns, and which elements of the operands these are, where they have several lines."""
    sides = {"left": x.left_lines, "right": x.right_lines}
    lines = "".join(f", {name}=({x.line}, {count})" for name, count in sides.items() if count > 1)
    return f"{x.rows // x.left_lines}, {x.columns // x.right_lines}{lines}"
