"""Kernels as structured loops on buffers, before they are mapped to a machine's workers, threads and vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    IndexType,
    MemRefType,
    StringAttr,
    SymbolNameConstraint,
    i64,
)
from xdsl.dialects.utils import EnumAttribute, parse_func_op_like, print_func_op_like
from xdsl.dialects.utils.dynamic_index_list import DynamicIndexList
from xdsl.ir import Attribute, Block, Operation, Region, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    IsolatedFromAbove,
    IsTerminator,
    MemoryReadEffect,
    MemoryWriteEffect,
    Pure,
    RecursiveMemoryEffect,
    SymbolOpInterface,
)

from mlirt.dialects.combine import ReduceKind
from mlirt.dialects.tensor_op import require

# A stride that is an operand and not a number.
DYNAMIC = -(2**63)
# Other strides than 0 and 1 at which the lanes of a vector are loaded together.
SMALL_STEPS = frozenset({-1, 2, 3, 4})


@irdl_op_definition
class FuncOp(IRDLOperation):
    """A kernel: buffers and scalars in, nothing out. Buffers are rank-1 memrefs, sizes are `index` arguments.

    Example: `kernel.func @relu(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) { .. kernel.return }`
    """

    name = "kernel.func"

    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    family = opt_prop_def(StringAttr)
    arg_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    def __init__(self, name: str, arguments: Sequence[Attribute], body: Region | None = None, family: str = ""):
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "function_type": FunctionType.from_lists(list(arguments), []),
                "family": StringAttr(family) if family else None,
            },
            regions=[body if body is not None else Region(Block(arg_types=arguments))],
        )

    @classmethod
    def parse(cls, parser: Parser) -> FuncOp:
        name, inputs, _, region, extra, arg_attrs, _ = parse_func_op_like(
            parser, reserved_attr_names=("sym_name", "function_type")
        )
        op = cls(name, list(inputs), region)
        given: Mapping[str, Attribute] = {} if extra is None else extra.data
        for key, value in given.items():
            (op.properties if key == "family" else op.attributes)[key] = value
        if arg_attrs is not None:
            op.properties["arg_attrs"] = arg_attrs
        return op

    def print(self, printer: Printer) -> None:
        attributes = dict(self.attributes)
        if self.family is not None:
            attributes["family"] = self.family
        print_func_op_like(
            printer,
            self.sym_name,
            self.function_type,
            self.body,
            attributes,
            arg_attrs=self.arg_attrs,
            reserved_attr_names=(),
        )

    def verify_(self) -> None:
        given = [arg.type for arg in self.body.block.args]
        require(
            given == list(self.function_type.inputs),
            f"kernel.func @{self.sym_name.data}: the block takes other types than the function type",
        )
        for type_ in given:
            require(
                not isinstance(type_, MemRefType) or len(type_.shape) == 1,
                f"kernel.func @{self.sym_name.data}: buffers are rank-1 memrefs, not {type_}",
            )


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """End a kernel."""

    name = "kernel.return"

    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict"


@irdl_op_definition
class YieldOp(IRDLOperation):
    """End the body of a parallel loop or a reduction, with one value for each result of the latter."""

    name = "kernel.yield"

    values = var_operand_def(AnyAttr())
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "attr-dict ($values^ `:` type($values))?"


@irdl_op_definition
class ParallelOp(IRDLOperation):
    """Independent iterations over a box. The outermost one is spread over blocks or workers, a nested one over the
    threads of a block or the lanes of a vector.

    Example: `kernel.parallel (%n, %m) { ^bb0(%i: index, %j: index): .. kernel.yield }`
    """

    name = "kernel.parallel"

    extents = var_operand_def(IndexType())
    body = region_def("single_block")

    traits = traits_def(RecursiveMemoryEffect())
    assembly_format = "`(` $extents `)` attr-dict-with-keyword $body"

    def __init__(self, extents: Sequence[SSAValue], body: Region | None = None):
        region = body if body is not None else Region(Block(arg_types=[IndexType()] * len(extents)))
        super().__init__(operands=[extents], regions=[region])

    def verify_(self) -> None:
        _check_indices(self, self.body, len(self.extents))


@irdl_attr_definition
class ReduceKindAttr(EnumAttribute[ReduceKind], SpacedOpaqueSyntaxAttribute):
    name = "kernel.reduce_kind"


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """Combine the yielded value of every iteration of a box; an empty box gives `init`.

    Iterations may be combined in any fixed order. `max` and `min` propagate NaN.

    Example: `%s = kernel.reduce add (%k) init %zero : f32 -> f32 { ^bb0(%i: index): .. kernel.yield %v : f32 }`
    """

    name = "kernel.reduce"

    kind = prop_def(ReduceKindAttr)
    extents = var_operand_def(IndexType())
    init = operand_def(AnyAttr())
    result = result_def(AnyAttr())
    body = region_def("single_block")

    traits = traits_def(RecursiveMemoryEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$kind `(` $extents `)` `init` $init attr-dict-with-keyword `:` type($init) `->` type($result) $body"
    )

    def __init__(self, kind: ReduceKind, extents: Sequence[SSAValue], init: SSAValue, body: Region | None = None):
        region = body if body is not None else Region(Block(arg_types=[IndexType()] * len(extents)))
        super().__init__(
            operands=[extents, init],
            properties={"kind": ReduceKindAttr(kind)},
            result_types=[init.type],
            regions=[region],
        )

    def verify_(self) -> None:
        _check_indices(self, self.body, len(self.extents))
        require(
            self.init.type == self.result.type,
            f"kernel.reduce: init is {self.init.type}, the result {self.result.type}",
        )


def split_strides(strides: Sequence[SSAValue | int]) -> tuple[list[SSAValue], DenseArrayBase]:
    """Dynamic strides, and the static ones with `DYNAMIC` in their place."""
    dynamic = [stride for stride in strides if isinstance(stride, SSAValue)]
    static = [DYNAMIC if isinstance(stride, SSAValue) else stride for stride in strides]
    return dynamic, DenseArrayBase.from_list(i64, static)


def element_of_buffer(buffer: SSAValue) -> Attribute:
    """The type of the elements of a buffer."""
    type_: Attribute = buffer.type
    assert isinstance(type_, MemRefType)
    return cast("MemRefType[Attribute]", type_).element_type


@irdl_op_definition
class LoadOp(IRDLOperation):
    """Read one element at the sum of `index * stride`; a stride is a number or a value.

    Example: `%v = kernel.load %x[%i, %j] strides [%s, 1] : memref<?xf32> -> f32`
    """

    name = "kernel.load"

    buffer = operand_def(MemRefType)
    indices = var_operand_def(IndexType())
    dynamic_strides = var_operand_def(IndexType())
    static_strides = prop_def(DenseArrayBase.constr(i64))
    result = result_def(AnyAttr())

    traits = traits_def(MemoryReadEffect())
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    custom_directives = (DynamicIndexList,)
    assembly_format = (
        "$buffer `[` $indices `]` `strides` custom<DynamicIndexList>($dynamic_strides, $static_strides) attr-dict "
        "`:` type($buffer) `->` type($result)"
    )

    def __init__(self, buffer: SSAValue, indices: Sequence[SSAValue], strides: Sequence[SSAValue | int]):
        dynamic, static = split_strides(strides)
        super().__init__(
            operands=[buffer, indices, dynamic],
            properties={"static_strides": static},
            result_types=[element_of_buffer(buffer)],
        )

    def verify_(self) -> None:
        stride_values(self)


@irdl_op_definition
class StoreOp(IRDLOperation):
    """Write one element at the sum of `index * stride`."""

    name = "kernel.store"

    value = operand_def(AnyAttr())
    buffer = operand_def(MemRefType)
    indices = var_operand_def(IndexType())
    dynamic_strides = var_operand_def(IndexType())
    static_strides = prop_def(DenseArrayBase.constr(i64))

    traits = traits_def(MemoryWriteEffect())
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    custom_directives = (DynamicIndexList,)
    assembly_format = (
        "$value `,` $buffer `[` $indices `]` `strides` custom<DynamicIndexList>($dynamic_strides, $static_strides) "
        "attr-dict `:` type($value) `,` type($buffer)"
    )

    def __init__(
        self, value: SSAValue, buffer: SSAValue, indices: Sequence[SSAValue], strides: Sequence[SSAValue | int]
    ):
        dynamic, static = split_strides(strides)
        super().__init__(operands=[value, buffer, indices, dynamic], properties={"static_strides": static})

    def verify_(self) -> None:
        stride_values(self)


def stride_values(op: LoadOp | StoreOp) -> list[SSAValue | int]:
    """One stride per index of a load or store: a number, or the value that holds it."""
    numbers = [int(stride) for stride in op.static_strides.iter_values()]
    require(len(numbers) == len(op.indices), f"{op.name}: {len(op.indices)} indices and {len(numbers)} strides")
    require(
        numbers.count(DYNAMIC) == len(op.dynamic_strides),
        f"{op.name}: {numbers.count(DYNAMIC)} strides are dynamic, {len(op.dynamic_strides)} are given",
    )
    dynamic = iter(op.dynamic_strides)
    return [next(dynamic) if stride == DYNAMIC else stride for stride in numbers]


def _check_indices(op: Operation, body: Region, count: int) -> None:
    given = [arg.type for arg in body.block.args]
    require(
        given == [IndexType()] * count,
        f"{op.name}: the body takes one index per extent, {count}; it takes {len(given)}",
    )
    require(isinstance(body.block.last_op, YieldOp), f"{op.name}: the body does not end with kernel.yield")


__all__ = [
    "DYNAMIC",
    "SMALL_STEPS",
    "FuncOp",
    "LoadOp",
    "ParallelOp",
    "ReduceKind",
    "ReduceKindAttr",
    "ReduceOp",
    "ReturnOp",
    "StoreOp",
    "YieldOp",
    "split_strides",
]
