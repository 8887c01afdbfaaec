"""A module is verified again only where something changed, and what breaks is found all the same."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from mlirt.dialects.context import RtContext
from mlirt.dialects.diagnostics import VerificationError
from mlirt.dialects.registry import register_dialects
from mlirt.dialects.repeated_verification import RepeatedVerifier
from mlirt.dialects.source_parser import parse_source
from mlirt.dialects.tensor_types import element_type, tensor
from mlirt.dialects.verification import verify

_HEAD = 'func.func @main(%x: tensor<4xf32> {trt.name = "x"}) -> (tensor<4xf32> {trt.name = "y"}) {\n'
_KERNEL = """
kernel.func @copy(%a : memref<4xf32>) {
  %one = arith.constant 1 : index
  %two = arith.addi %one, %one : index
  kernel.return
}
"""


def _chain(length: int) -> ModuleOp:
    lines = [f"  %v{k + 1} = trt.activation relu %v{k} : (tensor<4xf32>) -> tensor<4xf32>" for k in range(length)]
    text = _HEAD + "\n".join(lines).replace("%v0 ", "%x ") + f"\n  func.return %v{length} : tensor<4xf32>\n}}"
    ctx = RtContext()
    register_dialects(ctx)
    module, _ = parse_source(ctx, text, "test")
    return module


def _ops(module: ModuleOp) -> list[Operation]:
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    return list(function.body.block.ops)


def test_of_equal_ops_one_is_verified_and_what_has_not_changed_is_not() -> None:
    counts: list[int] = []
    for length in (20, 200):
        module, verifier = _chain(length), RepeatedVerifier()
        verifier.verify(module)
        first = verifier.verified
        verifier.verify(module)
        counts.append(first)
        assert verifier.verified == first + 1  # the return, which depends on the function
    assert counts[0] == counts[1] == 3  # an op behind an argument, one behind another op, the return


def test_an_op_that_changed_is_verified_and_so_is_who_reads_it() -> None:
    module, verifier = _chain(8), RepeatedVerifier()
    verifier.verify(module)
    before = verifier.verified
    _ops(module)[3].attributes["note"] = StringAttr("changed")
    verifier.verify(module)
    assert verifier.verified == before + 3  # it, its reader, the return


@pytest.mark.parametrize("place", [0, 3, 7])
@pytest.mark.parametrize("calls", [1, 2])
def test_what_breaks_between_two_checks_is_found(place: int, calls: int) -> None:
    module, verifier = _chain(8), RepeatedVerifier()
    for _ in range(calls):
        verifier.verify(module)
    op = _ops(module)[place]
    object.__setattr__(op.results[0], "_type", tensor(element_type("float32"), (5,)))
    with pytest.raises(VerificationError) as found:
        verifier.verify(module)
    with pytest.raises(VerificationError) as expected:
        verify(module)
    assert str(found.value) == str(expected.value)
    with pytest.raises(VerificationError):  # and it is still wrong the next time
        verifier.verify(module)


def test_an_op_that_breaks_alike_is_found_after_a_right_one() -> None:
    module, verifier = _chain(8), RepeatedVerifier()
    verifier.verify(module)
    del _ops(module)[5].properties["kind"]
    with pytest.raises(VerificationError, match="kind"):
        verifier.verify(module)


def test_what_is_in_an_op_belongs_to_it() -> None:
    ctx = RtContext()
    register_dialects(ctx)
    module, _ = parse_source(ctx, _KERNEL, "test")
    verifier = RepeatedVerifier()
    verifier.verify(module)
    before = verifier.verified
    verifier.verify(module)
    assert verifier.verified == before
    kernel = next(iter(module.ops))
    added = next(op for op in kernel.walk() if op.name == "arith.addi")
    added.detach()
    added.erase()
    verifier.verify(module)
    assert verifier.verified == before + 1


@pytest.mark.parametrize("count", [3, 30])
def test_elements_of_constants_count_only_where_a_verifier_looks_at_them(count: int) -> None:
    verifier = RepeatedVerifier()
    verifier.verify(_parsed(_scaled(count)))
    assert verifier.verified == 4  # a constant, a product with an argument, one with another product, the return
    lengths, verifier = [8, 4] * count, RepeatedVerifier()
    verifier.verify(_parsed(_reshaped(lengths)))
    assert verifier.verified == 4  # a constant, a reshape to each of the two shapes, the return
    with pytest.raises(VerificationError, match="16 elements became 15"):
        RepeatedVerifier().verify(_parsed(_reshaped([*lengths, 5])))


def _parsed(text: str) -> ModuleOp:
    ctx = RtContext()
    register_dialects(ctx)
    return parse_source(ctx, text, "test")[0]


def _reshaped(lengths: list[int]) -> str:
    """Reshapes to these lengths, of which constants alone tell."""
    lines = [
        f"  %c{k} = trt.constant {{value = dense<[{length}, {16 // length}]> : tensor<2xi64>}} : tensor<2xi64>\n"
        f"  %s{k} = trt.shuffle %x, %c{k} : (tensor<16xf32>, tensor<2xi64>) -> tensor<?x?xf32>"
        for k, length in enumerate(lengths)
    ]
    return "func.func @reshaped(%x: tensor<16xf32>) {\n" + "\n".join(lines) + "\n  func.return\n}\n"


def _scaled(count: int) -> str:
    lines = [
        f"  %c{k} = trt.constant {{value = dense<[{k}.0, 2.0]> : tensor<2xf32>}} : tensor<2xf32>\n"
        f"  %y{k + 1} = trt.elementwise prod %y{k}, %c{k} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>"
        for k in range(count)
    ]
    return "func.func @scaled(%y0: tensor<2xf32>) {\n" + "\n".join(lines) + "\n  func.return\n}\n"
