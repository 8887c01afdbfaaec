"""The printer writes what xDSL's writes, and formats equal attributes and ops once."""

from __future__ import annotations

from io import StringIO
from unittest import mock

import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import ArrayAttr, FloatAttr, FusedLoc, ModuleOp, NameLoc, NoneAttr, StringAttr, f32
from xdsl.irdl.declarative_assembly_format import FormatProgram
from xdsl.printer import Printer

from mlirt.dialects.ir_printer import IrPrinter
from mlirt.dialects.source_parser import parse_source
from mlirt.dialects.xdsl_compat import module_text
from mlirt.tools.input_files import new_context

_LAYER = """
    %a{0} = trt.activation relu %{1} : (tensor<2x3xf32>) -> tensor<2x3xf32> loc("one \\22{0}\\22")
    %b{0} = trt.elementwise sum %a{0}, %{1} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %c{0} = trt.elementwise sum %b{0}, %b{0} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %d{0} = trt.constant {{value = dense<[0.1, {0}.5, 1.5e-9, 2.0, -3.25, 1.23456789]> : tensor<6xf32>}} : tensor<6xf32>
    %{2} = trt.activation tanh %c{0} : (tensor<2x3xf32>) -> tensor<2x3xf32>
"""


def _layers(count: int) -> ModuleOp:
    names = ["x", *(f"y{layer}" for layer in range(count))]
    body = "".join(_LAYER.format(layer, names[layer], names[layer + 1]) for layer in range(count))
    text = f"""func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {{{body}
    func.return %c{count - 1} : tensor<2x3xf32>
}}"""
    return parse_source(new_context(), text, "layers.mlir")[0]


@pytest.mark.parametrize("debuginfo", [False, True])
@pytest.mark.parametrize("generic", [False, True])
def test_the_text_is_that_of_xdsl(debuginfo: bool, generic: bool) -> None:
    module, stream = _layers(3), StringIO()
    Printer(stream=stream, print_debuginfo=debuginfo, print_generic_format=generic).print_op(module)
    assert module_text(module, debuginfo=debuginfo, generic=generic) == stream.getvalue() + "\n"


def test_equal_ops_are_formatted_once() -> None:
    """One layer more formats one op more, its constant."""

    def formatted(layers: int) -> int:
        module = _layers(layers)
        with mock.patch.object(FormatProgram, "print", autospec=True, side_effect=FormatProgram.print) as printing:
            module_text(module)
        return printing.call_count

    assert formatted(12) - formatted(4) == 8


def test_zeros_of_both_signs_are_written_as_they_are() -> None:
    """They are equal attributes with different texts."""
    module = ModuleOp([test.TestOp(attributes={"a": FloatAttr(zero, f32)}) for zero in (0.0, -0.0, 0.0)])
    text = module_text(module)
    assert [line.count("-0.0") for line in text.splitlines()[1:-1]] == [0, 1, 0]


def test_a_text_of_an_attribute_is_kept_with_the_attribute() -> None:
    """Its identity is another's once it is gone."""
    stream = StringIO()
    printer = IrPrinter(stream=stream)
    for number in range(200):
        printer.print_attribute(StringAttr(str(number)))
    assert stream.getvalue() == "".join(f'"{number}"' for number in range(200))


def test_a_location_inside_of_another_has_its_own_form() -> None:
    name = NameLoc(StringAttr("a"), NoneAttr())
    module = ModuleOp([test.TestOp(), test.TestOp(), test.TestOp()])
    for op, location in zip(module.ops, (name, FusedLoc(ArrayAttr([name]), NoneAttr()), name), strict=True):
        op.location = location
    stream = StringIO()
    Printer(stream=stream, print_debuginfo=True).print_op(module)
    assert module_text(module, debuginfo=True) == stream.getvalue() + "\n"
