"""Quick ways through xDSL change nothing that can be seen: operands, walks, identity, hashes, construction, checks."""

from __future__ import annotations

from abc import ABCMeta
from typing import Any
from unittest import mock

import pytest
from xdsl.dialects import arith, scf, test
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    f32,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, BlockOps, Data, Operation, ParametrizedAttribute, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    param_def,
    prop_def,
    result_def,
    var_operand_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.source_parser import parse_source
from mlirt.tools.input_files import new_context


@irdl_op_definition
class _ManyOp(IRDLOperation):
    name = "test.many"
    first = operand_def()
    maybe = opt_operand_def()
    others = var_operand_def()
    result = result_def()
    kind = prop_def(StringAttr, default_value=StringAttr("usual"))
    irdl_options = (AttrSizedOperandSegments(as_property=True),)


@irdl_attr_definition
class _PairAttr(ParametrizedAttribute):
    name = "test.pair"
    text: StringAttr = param_def()
    number: IntegerAttr = param_def()


@irdl_attr_definition
class _EvenAttr(Data[int]):
    name = "test.even"

    def verify(self) -> None:
        if self.data % 2:
            raise VerifyException("odd")

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> int:
        return parser.parse_integer()

    def print_parameter(self, printer: Printer) -> None:
        printer.print_int(self.data)


def _values(count: int) -> list[SSAValue]:
    return list(test.TestOp(result_types=[i32] * count).results)


def test_an_operand_is_replaced_where_it_stands_and_uses_follow() -> None:
    one, two, three = _values(3)
    op = test.TestOp([one, two, one])
    operands = op.operands
    operands[0] = three
    operands[2] = two  # the view knows what has happened meanwhile
    assert list(op.operands) == [three, two, two]
    assert not one.uses
    assert three.has_one_use()
    assert sorted(use.index for use in two.uses) == [1, 2]
    op.operands = [one]
    assert list(op.operands) == [one]
    assert not two.uses
    assert not three.uses
    assert not test.TestOp().operands


def test_walks_see_the_ops_that_xdsl_sees_in_its_order() -> None:
    inner = [test.TestOp(attributes={"n": StringAttr(str(k))}) for k in range(3)]
    middle = test.TestOp(regions=[Region(Block(inner[:2])), Region([Block(), Block(inner[2:])])])
    module = ModuleOp([test.TestOp(), middle, test.TestOp()])
    first, _, last = module.ops
    assert list(module.walk()) == [module, first, middle, *inner, last]
    assert list(module.walk(region_first=True)) == [first, *inner, middle, last, module]
    assert list(module.walk(reverse=True)) == [module, last, middle, inner[2], inner[1], inner[0], first]


def test_an_op_may_be_erased_when_a_walk_comes_to_it() -> None:
    module = ModuleOp([test.TestOp() for _ in range(4)])
    for op in module.body.block.ops:
        op.detach()
        op.erase()
    assert not module.body.block.ops
    assert isinstance(module.body.block.ops, BlockOps)


def test_ops_are_made_with_the_sizes_and_defaults_of_their_definition() -> None:
    one, two, three = _values(3)
    op = _ManyOp(operands=[one, None, [two, three]], result_types=[f32])
    assert op.properties["operandSegmentSizes"] == DenseArrayBase.from_list(i32, [1, 0, 2])
    assert (op.first, op.maybe, tuple(op.others), op.kind) == (one, None, (two, three), StringAttr("usual"))
    assert _ManyOp(operands=[one, two, []], result_types=[f32], properties={"kind": StringAttr("x")}).maybe is two
    op.verify()


@pytest.mark.parametrize("given", [[[], None, []], [None, None, []], [[], [], []]], ids=str)
def test_what_is_no_op_of_a_definition_is_refused_by_xdsl(given: list[list[SSAValue] | None]) -> None:
    with pytest.raises(ValueError, match="non-"):
        _ManyOp(operands=given, result_types=[f32])


def test_parameters_of_attributes_are_checked() -> None:
    right = _PairAttr(StringAttr("a"), IntegerAttr(1, i64))
    assert right == _PairAttr(StringAttr("a"), IntegerAttr(1, i64))
    wrong: Any = IntegerAttr(2, i64)
    with pytest.raises(VerifyException, match="parameter 'text' does not verify"):
        _PairAttr(wrong, IntegerAttr(1, i64))
    with pytest.raises(VerifyException):
        IntegerAttr(1 << 80, i64)


def test_isolation_is_still_checked() -> None:
    outside = arith.ConstantOp(IntegerAttr(1, i64))
    inner = ModuleOp([arith.AddiOp(outside, outside)])
    with pytest.raises(VerifyException, match="IsolatedFromAbove"):
        ModuleOp([outside, inner]).verify()


def test_implicit_terminators_are_made() -> None:
    text = "%n = arith.constant 1 : index\nscf.for %i = %n to %n step %n {\n}"
    module, _ = parse_source(new_context(), text, "test")
    loop = module.body.block.last_op
    assert isinstance(loop, scf.ForOp)
    assert isinstance(loop.body.block.last_op, scf.YieldOp)


def test_no_class_is_asked_for_registered_ones() -> None:
    op, attribute = test.TestOp(result_types=[i32]), StringAttr("a")
    with mock.patch.object(ABCMeta, "__instancecheck__", side_effect=AssertionError):
        assert isinstance(op, Operation)
        assert not isinstance(op, ModuleOp)
        assert isinstance(op.results[0], SSAValue)
        assert isinstance(attribute, Attribute)
        assert not isinstance(attribute, TensorType)
        assert not isinstance(attribute, _PairAttr)


def test_a_hash_is_computed_once_and_is_that_of_equal_attributes() -> None:
    one, other = (TensorType(f32, [2, 3, 5]) for _ in range(2))
    assert hash(one) == hash(other)
    assert one is not other
    with mock.patch.object(type(one.shape), "__hash__", side_effect=AssertionError):
        assert hash(one) == hash(other)


def test_data_of_which_nothing_is_asked_is_not_checked_and_other_data_is() -> None:
    with mock.patch.object(Attribute, "verify", side_effect=AssertionError):
        StringAttr("a")
    with pytest.raises(VerifyException):
        _EvenAttr(3)
    assert _EvenAttr(4).data == 4
