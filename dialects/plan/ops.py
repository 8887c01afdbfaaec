"""The host program: memory, and kernels launched on it one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from enum import auto
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    FloatAttr,
    FunctionType,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
)
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryAllocEffect, MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from mlirt.dialects.plan.border import BORDER_NUMBERS, Border
from mlirt.dialects.plan.expression import Argument, BufferType, ExpressionAttr, PointerAttr
from mlirt.dialects.plan.tensor_map import TensorMapAttr
from mlirt.dialects.shared_attributes import integer
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import require
from mlirt.dialects.weights import WeightsAttr


class BufferKind(StrEnum):
    ARENA = auto()
    OUTPUT = auto()


@irdl_attr_definition
class BufferKindAttr(EnumAttribute[BufferKind], SpacedOpaqueSyntaxAttribute):
    name = "plan.buffer_kind"


@irdl_op_definition
class InputOp(IRDLOperation):
    """The memory of an input of the network.

    Example: `%b = plan.input %x : tensor<2x3xf32> -> !plan.memory`
    """

    name = "plan.input"

    source = operand_def(TensorType)
    buffer = result_def(BufferType)
    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `->` type($buffer)"

    def __init__(self, source: SSAValue):
        super().__init__(operands=[source], result_types=[BufferType()])


@irdl_op_definition
class OutputOp(IRDLOperation):
    """The tensor that lies in a buffer after the last launch, dense and from the buffer's start.

    Example: `%y = plan.output %b : !plan.memory -> tensor<2x3xf32>`
    """

    name = "plan.output"

    buffer = operand_def(BufferType)
    result = result_def(TensorType)
    traits = traits_def(MemoryReadEffect())
    assembly_format = "$buffer attr-dict `:` type($buffer) `->` type($result)"

    def __init__(self, buffer: SSAValue, result: Attribute):
        super().__init__(operands=[buffer], result_types=[result])


@irdl_op_definition
class WeightOp(IRDLOperation):
    """The memory of an array that is known at build time.

    Example: `%w = plan.weight {value = #trt.weights<"conv1.weight", "9f86d081">, bytes = 36 : i64} : !plan.memory`
    """

    name = "plan.weight"

    value = prop_def(WeightsAttr)
    bytes = prop_def(IntegerAttr)
    buffer = result_def(BufferType)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict `:` type($buffer)"

    def __init__(self, value: WeightsAttr, size: int):
        super().__init__(properties={"value": value, "bytes": integer(size)}, result_types=[BufferType()])


@irdl_op_definition
class BufferOp(IRDLOperation):
    """Memory that launches write and read.

    `halo` names the geometry of its border cells, whose bytes are all `fill` before the first launch that uses it.
    `border` says where they lie, for runs to write them again where other buffers share the memory: the number of
    images, the rows of one, the bytes of a row, the rows of border above and below, the bytes of it at both ends of a
    row. Without it only buffers of the same `halo` share memory, which have the same bytes there.
    `first` and `last` are the launches at which it is alive, `offset` its place in the arena; plan-memory fills them
    in. `kind` output is memory that the caller gets.

    Example: `%b = plan.buffer {bytes = #plan.expression<"4*n">} : !plan.memory`
    """

    name = "plan.buffer"

    bytes = prop_def(ExpressionAttr)
    kind = prop_def(BufferKindAttr, default_value=BufferKindAttr(BufferKind.ARENA))
    halo = opt_prop_def(StringAttr)
    border = opt_prop_def(ArrayAttr[ExpressionAttr])
    fill = prop_def(IntegerAttr, default_value=IntegerAttr(0, 64))
    first = opt_prop_def(IntegerAttr)
    last = opt_prop_def(IntegerAttr)
    offset = opt_prop_def(ExpressionAttr)
    buffer = result_def(BufferType)
    traits = traits_def(MemoryAllocEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict `:` type($buffer)"

    def __init__(self, size: Dim, border: Border | None = None):
        properties: dict[str, Attribute | None] = {"bytes": ExpressionAttr.of(size)}
        if border is not None:
            properties["halo"], properties["fill"] = StringAttr(border.geometry), integer(border.fill)
            properties["border"] = ArrayAttr(ExpressionAttr.of(number) for number in border.numbers)
        super().__init__(properties=properties, result_types=[BufferType()])

    def verify_(self) -> None:
        fill = self.fill.value.data
        require(0 <= fill <= 255 and (fill == 0 or self.halo is not None), f"{self.name}: {fill} fills no halo")
        require((self.first is None) == (self.last is None), f"{self.name} has only one of first and last")
        bordered = self.border is None or (self.halo is not None and len(self.border) == BORDER_NUMBERS)
        require(bordered, f"{self.name}: a border has a halo and {BORDER_NUMBERS} numbers")


@irdl_op_definition
class ViewOp(IRDLOperation):
    """A part of a buffer, `bytes` from `offset` on.

    Example: `%v = plan.view %b {offset = #plan.expression<"64">, bytes = #plan.expression<"4*n">} : !plan.memory ->
    !plan.memory`
    """

    name = "plan.view"

    source = operand_def(BufferType)
    offset = prop_def(ExpressionAttr)
    bytes = prop_def(ExpressionAttr)
    buffer = result_def(BufferType)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$source attr-dict `:` type($source) `->` type($buffer)"

    def __init__(self, source: SSAValue, offset: Dim, size: Dim):
        super().__init__(
            operands=[source],
            properties={"offset": ExpressionAttr.of(offset), "bytes": ExpressionAttr.of(size)},
            result_types=[BufferType()],
        )


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """Run a kernel; its location names the layers that the launch stands for.

    `args` has one entry per kernel argument: `#plan.pointer<operand, "bytes">`, `#plan.tensor_map<operand, ..>`,
    `#plan.expression<"n">` or a float.
    `grid` has the numbers of blocks on a GPU, `signature` the tensor types of the op that the launch came from,
    `tensors` what its operands and results are called; constants have no name. On a CPU a launch may be marked
    `sequential`, as it keeps one worker busy for long, or `no_barrier`, as the launch after it need not wait for it.
    C1: pointers name operands. C2: the grid has three entries.

    Example: `plan.launch %a, %b {kernel = @relu_1a2b3c4d, args = [#plan.pointer<0, "0">, #plan.pointer<1, "0">,
    #plan.expression<"4*n">]} : !plan.memory, !plan.memory`
    """

    name = "plan.launch"

    buffers = var_operand_def(BufferType)
    kernel = prop_def(SymbolRefAttr)
    args = prop_def(ArrayAttr)
    grid = opt_prop_def(ArrayAttr[ExpressionAttr])
    signature = opt_prop_def(FunctionType)
    tensors = opt_prop_def(ArrayAttr[StringAttr])
    sequential = opt_prop_def(UnitAttr)
    no_barrier = opt_prop_def(UnitAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "($buffers^)? attr-dict (`:` type($buffers)^)?"

    def __init__(
        self,
        kernel: str,
        buffers: Sequence[SSAValue],
        args: Sequence[Argument],
        grid: Sequence[Dim] | None = None,
        signature: FunctionType | None = None,
        tensors: ArrayAttr[StringAttr] | None = None,
    ):
        super().__init__(
            operands=[buffers],
            properties={
                "kernel": SymbolRefAttr(kernel),
                "args": ArrayAttr(args),
                "grid": None if grid is None else ArrayAttr(ExpressionAttr.of(size) for size in grid),
                "signature": signature,
                "tensors": tensors,
            },
        )

    def arguments(self) -> tuple[Argument, ...]:
        """One entry per kernel argument."""
        return tuple(cast("Argument", arg) for arg in self.args)

    def kernel_name(self) -> str:
        return self.kernel.root_reference.data

    def verify_(self) -> None:
        legal = all(isinstance(arg, PointerAttr | TensorMapAttr | ExpressionAttr | FloatAttr) for arg in self.args)
        require(legal, f"{self.name}: an argument is a pointer, a tensor map, an expression or a float")
        for arg in self.arguments():
            if isinstance(arg, PointerAttr | TensorMapAttr) and arg.operand.data >= len(self.buffers):
                raise VerifyException(f"C1: {self.name} has {len(self.buffers)} buffers, but an argument names {arg}")
        require(self.grid is None or len(self.grid) == 3, f"C2: the grid of {self.name} has three entries")
