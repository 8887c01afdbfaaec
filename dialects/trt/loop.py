"""The borders of loops, as a network of layers has them: limits, iterators, recurrences and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from enum import auto

from xdsl.dialects.builtin import I64, BoolAttr, IntegerAttr, SymbolRefAttr, TensorType, i1, i32, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import BlockArgument, OpResult, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryWriteEffect, Pure
from xdsl.utils.str_enum import StrEnum

from mlirt.dialects.symbolic import Dim, sym
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import UNKNOWN_PREFIX, Tensor, compatible, dims, element_of, rank, with_dims
from mlirt.dialects.trt.boundary import BoundaryOp, symbol_of
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.operand_checks import check_axis
from mlirt.dialects.weights import WeightStore


class TripLimitKind(StrEnum):
    COUNT = auto()
    WHILE = auto()


@irdl_attr_definition
class TripLimitKindAttr(EnumAttribute[TripLimitKind], SpacedOpaqueSyntaxAttribute):
    name = "trt.trip_limit_kind"


class LoopOutputKind(StrEnum):
    LAST_VALUE = auto()
    CONCATENATE = auto()
    REVERSE = auto()


@irdl_attr_definition
class LoopOutputKindAttr(EnumAttribute[LoopOutputKind], SpacedOpaqueSyntaxAttribute):
    name = "trt.loop_output_kind"


@irdl_op_definition
class TripLimitOp(BoundaryOp):
    """How often a loop goes round (tensorrt-features.md#7.2 to 7.5).

    | kind | the loop has |
    |---|---|
    | count | as many iterations as the input says, none where it is negative |
    | while | the least number n of iterations with which the input is false, computed anew before each iteration |

    With one of each the smaller number counts.
    C1: the input of a count is a 0-D int32 or int64 tensor. C2: that of a while is a 0-D boolean tensor.

    Example: `trt.trip_limit count %n {loop = @steps} : tensor<i32>`
    """

    name = "trt.trip_limit"

    limit = operand_def(TensorType)
    kind = prop_def(TripLimitKindAttr)
    loop = prop_def(SymbolRefAttr)

    traits = traits_def(MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$kind $limit attr-dict `:` type($limit)"

    def check(self) -> None:
        of = self.limit.type
        if self.kind.data is TripLimitKind.COUNT:
            fits = rank(of) == 0 and element_of(of) in (i32, i64)
            require(fits, f"C1: TripLimit::kCOUNT requires a 0-D Int32 input, got {of}")
        else:
            fits = rank(of) == 0 and element_of(of) == i1
            require(fits, f"C2: TripLimit::kWHILE requires Bool input, a 0-D one, got {of}")

    def infer(self) -> Sequence[Tensor]:
        return []


@irdl_op_definition
class IteratorOp(BoundaryOp):
    """In iteration i the slice i of the input along `axis`, without that axis; with `reverse` counted from the end
    (7.6).

    C1: `axis` is an axis of the input. Iterating past the end is an error of the run.

    Example: `%e = trt.iterator %x {loop = @steps, axis = 1 : i64} : (tensor<2x5x3xf32>) -> tensor<2x3xf32>`
    """

    name = "trt.iterator"

    input = operand_def(TensorType)
    loop = prop_def(SymbolRefAttr)
    axis = prop_def(IntegerAttr[I64], default_value=IntegerAttr(0, i64))
    reverse = prop_def(BoolAttr, default_value=BoolAttr.from_bool(False))
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$input attr-dict `:` functional-type(operands, results)"

    def check(self) -> None:
        check_axis(self, "C1", self.axis.value.data, self.input.type)

    def infer(self) -> Sequence[Tensor]:
        axis, shape = self.axis.value.data, dims(self.input.type)
        return [with_dims(self.input.type, [*shape[:axis], *shape[axis + 1 :]])]


@irdl_op_definition
class RecurrenceOp(BoundaryOp):
    """What a loop carries: the initial value in the first iteration, then what `trt.recurrence_next` gave it (7.7).

    Example: `%r = trt.recurrence %x {loop = @steps} : (tensor<4xf32>) -> tensor<4xf32>`
    """

    name = "trt.recurrence"

    initial = operand_def(TensorType)
    loop = prop_def(SymbolRefAttr)
    output = result_def(TensorType)

    traits = traits_def(MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$initial attr-dict `:` functional-type(operands, results)"

    def infer(self) -> Sequence[Tensor]:
        return [with_dims(self.initial.type, dims(self.initial.type))]


@irdl_op_definition
class RecurrenceNextOp(BoundaryOp):
    """The only edge that leads back: the value of a recurrence in the next iteration, the second input of its layer.

    C1: the first operand is the result of a recurrence. C2: the value has its type.

    Example: `trt.recurrence_next %r, %s : tensor<4xf32>, tensor<4xf32>`
    """

    name = "trt.recurrence_next"

    recurrence = operand_def(TensorType)
    value = operand_def(TensorType)

    traits = traits_def(MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$recurrence `,` $value attr-dict `:` type($recurrence) `,` type($value)"

    def check(self) -> None:
        settled = isinstance(self.recurrence, OpResult | BlockArgument)  # a text may name it before it is there
        owner = self.recurrence.owner if settled else None
        require(
            not settled or isinstance(owner, RecurrenceOp),
            f"C1: {self.name} must follow an IRecurrenceLayer, not another layer",
        )
        fits = compatible(self.recurrence.type, self.value.type)
        require(fits, f"C2: the recurrence has the type {self.recurrence.type}, its next value {self.value.type}")

    @property
    def loop_name(self) -> str:
        owner = self.recurrence.owner
        assert isinstance(owner, RecurrenceOp)
        return symbol_of(owner.loop)

    def infer(self) -> Sequence[Tensor]:
        return []


@irdl_op_definition
class LoopOutputOp(BoundaryOp):
    """What is seen of a loop from outside (7.8 to 7.11).

    | kind | the result of n iterations |
    |---|---|
    | last_value | the recurrence after the last iteration, its initial value for n = 0 |
    | concatenate | the values of the iterations along a new axis at `axis`, `length` long; the rest is 0 |
    | reverse | the same from the end of that axis on: the value of the first iteration stands last |

    More iterations than `length` are an error of the run.
    C1: the input of a last value is a recurrence of the same loop. C2: only the other kinds have a length, which is a
    0-D int32 or int64 tensor. C3: `axis` is an axis of the result.

    Example: `%y = trt.loop_output concatenate %v length(%n : tensor<i32>) {loop = @steps, axis = 0 : i64} :
    (tensor<4xf32>) -> tensor<?x4xf32>`
    """

    name = "trt.loop_output"

    input = operand_def(TensorType)
    length = opt_operand_def(TensorType)
    kind = prop_def(LoopOutputKindAttr)
    loop = prop_def(SymbolRefAttr)
    axis = prop_def(IntegerAttr[I64], default_value=IntegerAttr(0, i64))
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$kind $input (`length` `(` $length^ `:` type($length) `)`)? attr-dict"
        " `:` `(` type($input) `)` `->` type($output)"
    )

    def check(self) -> None:
        if self.kind.data is LoopOutputKind.LAST_VALUE:
            owner = self.input.owner
            require(
                # An op that lacks the property is found by its own verifier.
                isinstance(owner, RecurrenceOp) and owner.properties.get("loop") == self.loop,
                "C1: input of LoopOutputLayer with LoopOutput::kLAST_VALUE must be output from an IRecurrenceLayer",
            )
        is_last = self.kind.data is LoopOutputKind.LAST_VALUE
        require(
            (self.length is None) == is_last,
            f"C2: {self.name} {self.kind.data} needs {'no' if is_last else 'a'} length",
        )
        if self.length is not None:
            of = self.length.type
            require(rank(of) == 0 and element_of(of) in (i32, i64), f"C2: the length is a 0-D Int32 tensor, got {of}")
            axis = self.axis.value.data
            require(
                0 <= axis <= rank(self.input.type),
                f"C3: {self.name} has no axis {axis}: it adds one to {self.input.type}",
            )

    def infer(self) -> Sequence[Tensor]:
        shape = list(dims(self.input.type))
        if self.length is not None:
            shape.insert(self.axis.value.data, self._length())
        return [with_dims(self.input.type, shape)]

    def _length(self) -> Dim:
        owner = self.length.op if isinstance(self.length, OpResult) else None
        if isinstance(owner, ConstantOp):
            return max(int(owner.array(WeightStore()).reshape(-1)[0]), 0)
        return sym(f"{UNKNOWN_PREFIX}{self.axis.value.data}")
