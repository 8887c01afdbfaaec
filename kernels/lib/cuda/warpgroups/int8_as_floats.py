"""Epilogues that take bytes as the floats that they are made first: several bytes become floats at once."""

from __future__ import annotations

from collections.abc import Collection

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, f32
from xdsl.ir import Operation, Region, SSAValue
from xdsl.utils.hints import isa

from mlirt.dialects.tensor_types import byte_width, is_unsigned

_STEPS = (arith.AddiOp, arith.BitcastOp, arith.SubfOp)
"""How `strength-reduce-conversions` makes an integer a float, once it has 32 bits: with these numbers."""
SHIFT_BITS, SHIFT = 0x4B400000, 1.5 * 2.0**23


def with_floats(region: Region, wanted: Collection[int]) -> tuple[Region, frozenset[int]]:
    """A copy of an epilogue that takes some of the arguments `wanted` as f32, and which.

    ^bb0(%byte: i8):                               ^bb0(%float: f32):
    %0 = arith.extsi %byte : i8 to i32
    %1 = arith.addi %0, %bits : i32            ->
    %2 = arith.bitcast %1 : i32 to f32
    %float = arith.subf %2, %shift : f32
    """
    copy, found = region.clone(), set[int]()
    for number in wanted:
        argument = copy.block.args[number]
        chain = _conversion(argument)
        if not chain:
            continue
        given = copy.block.insert_arg(f32, number + 1)
        chain[-1].results[0].replace_all_uses_with(given)
        for op in reversed(chain):
            copy.block.erase_op(op)
        copy.block.erase_arg(argument)
        found.add(number)
    return copy, frozenset(found)


def _conversion(argument: SSAValue) -> list[Operation]:
    """The operations that make a byte a float; none where something else becomes of it."""
    type_ = argument.type
    if not isa(type_, IntegerType) or byte_width(type_) != 1:
        return []
    wide: list[type[Operation]] = [arith.BitcastOp, arith.ExtUIOp] if is_unsigned(type_) else [arith.ExtSIOp]
    chain: list[Operation] = []
    value = argument
    for kind in (*wide, *_STEPS):
        user = value.get_user_of_unique_use()
        if user is None or not isinstance(user, kind) or user.operands[0] is not value:
            return []
        chain.append(user)
        value = user.results[0]
    return chain if _number(chain[-3]) == SHIFT_BITS and _number(chain[-1]) == SHIFT else []


def _number(op: Operation) -> float | None:
    """The constant that is added or taken away."""
    owner = op.operands[1].owner
    constant = owner.value if isinstance(owner, arith.ConstantOp) else None
    return constant.value.data if isinstance(constant, FloatAttr | IntegerAttr) else None
