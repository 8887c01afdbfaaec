"""What follows from the definition of an instruction: op class, verifier, builder, page, meaning, text, vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_type

import numpy as np
import pytest
from xdsl.dialects import test
from xdsl.dialects.arith import AddiOp, ConstantOp, MuliOp
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, VectorType, f16, f32
from xdsl.ir import Attribute, OpResult, SSAValue
from xdsl.utils.exceptions import VerifyException

from mlirt.codegen.numba_cpu.kernel_source import KernelSource
from mlirt.codegen.numba_cuda.word_source import WordSource
from mlirt.codegen.python_source import PythonSource
from mlirt.dialects.kernel import instruction_fields as fields
from mlirt.dialects.kernel.core import FuncOp, ReturnOp
from mlirt.dialects.kernel.fragment import LoadFragmentOp, StoreFragmentOp
from mlirt.dialects.kernel.instruction import Instruction, instruction, spec_of
from mlirt.dialects.kernel.instruction_fields import READS, Rule, Text
from mlirt.dialects.kernel.interpreter import run_kernel
from mlirt.dialects.kernel.interpreter_memory import OutOfBoundsError
from mlirt.dialects.kernel.simt import BarrierOp, ThreadIdOp
from mlirt.errors import CompileError

if TYPE_CHECKING:
    from mlirt.dialects.kernel.interpreter_instruction import Site


@instruction
class WeighOp(Instruction):
    """Each element of a fragment times one of memory, those from `limit` on as they are.

    Example: `..`
    """

    name = "kernel.weigh"

    value: SSAValue = fields.fragment("T", "n")
    weights: SSAValue = fields.memref("T")
    at: SSAValue = fields.index()
    limit: SSAValue | None = fields.index(default=None, kw_only=True)
    every: IntegerAttr = fields.attribute(converter=fields.number, default=1, kw_only=True)
    result: OpResult = fields.result(like="value")

    syntax = "$value `,` $weights `[` $at `]` (`first` $limit^)?"
    effects = READS
    rules = (
        Rule("a step is positive", lambda x: x.every > 0),
        Rule("fragments are short", lambda x: x.n <= 8, "{n} elements are too many"),
    )
    cpu = Text("weigh", "{every}", limits=("limit",))
    cuda = Text("weigh", lambda x: f'"{x.T}", {x.n}' + ", True" * (x.limit is not None), hint="weighed")

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        count: int = x.value.shape[1]
        which = np.broadcast_to(np.arange(count), (len(x.value), count))
        inside = True if x.limit is None else which < x.limit[:, None]
        factors = x.weights.read(x.at[:, None] + which * x.every, inside)
        return x.value * np.where(inside, factors, 1.0)


def values(*types: Attribute) -> list[SSAValue]:
    return list(test.TestOp(result_types=types).results)


def weigh(count: int = 4, element: Attribute = f32, **given: Any) -> WeighOp:
    value, weights, at, limit = values(VectorType(element, [count]), MemRefType(f32, [16]), IndexType(), IndexType())
    given = {name: limit if one is ... else one for name, one in given.items()}
    return WeighOp(value, weights, at, **given)


def test_the_class_has_the_fields_of_the_definition() -> None:
    op = weigh(every=2)
    op.verify()
    # Type checkers know them too.
    assert assert_type(op.every, IntegerAttr).value.data == 2
    assert assert_type(op.limit, SSAValue | None) is None
    assert assert_type(op.result, OpResult).type == assert_type(op.value, SSAValue).type
    assert WeighOp.get_irdl_definition().assembly_format == (
        "$value `,` $weights `[` $at `]` (`first` $limit^)? attr-dict `:` "
        "type($value) `,` type($weights) `->` type($result)"
    )


def test_rules_are_numbered_and_variables_agree() -> None:
    with pytest.raises(VerifyException, match=r"C1: kernel\.weigh: a step is positive"):
        weigh(every=0).verify()
    with pytest.raises(VerifyException, match=r"C2: kernel\.weigh: 9 elements are too many"):
        weigh(9).verify()
    with pytest.raises(VerifyException, match=r"vector<4xf16> and memref<16xf32> differ in the element type"):
        weigh(element=f16).verify()


def test_a_result_has_the_type_that_follows() -> None:
    op = weigh()
    op.result._type = VectorType(f32, [5])  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(VerifyException, match=r"the result is vector<5xf32>, the value vector<4xf32>"):
        op.verify()


def test_the_builder_names_what_it_takes() -> None:
    value, weights = values(VectorType(f32, [4]), MemRefType(f32, [16]))
    with pytest.raises(TypeError, match=r"kernel\.weigh takes value, weights, at, limit, every; missing \['at'\]"):
        WeighOp(value, weights)  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match=r"unknown \['step'\]"):
        weigh(step=3)


def test_constraints_are_part_of_the_documentation() -> None:
    before, rules, example = (WeighOp.__doc__ or "").split("\n\n")
    assert before.startswith("Each element")
    assert rules.strip() == "C1: a step is positive. C2: fragments are short."
    assert example.strip() == "Example: `..`"


def _kernel(limit: bool, at: int) -> FuncOp:
    """Four threads weigh two elements each by those of %w from `at` on, the first one only where there is a limit."""
    func = FuncOp("k", [MemRefType(f32, [-1])] * 3)
    x, w, y = func.body.block.args
    thread, two = ThreadIdOp(), ConstantOp(IntegerAttr(2, IndexType()))
    one, start = ConstantOp(IntegerAttr(1, IndexType())), ConstantOp(IntegerAttr(at, IndexType()))
    place = MuliOp(thread.result, two.result)
    from_w = AddiOp(place.result, start.result)
    load = LoadFragmentOp(x, place.result, (0, 1))
    weighed = WeighOp(load.result, w, from_w.result, limit=one.result if limit else None)
    store = StoreFragmentOp(weighed.result, y, place.result, (0, 1))
    func.body.block.add_ops([thread, two, one, start, place, from_w, load, weighed, store, ReturnOp()])
    func.verify()
    return func


@pytest.mark.parametrize("limit", [False, True])
def test_the_meaning_sees_one_row_for_each_thread(limit: bool) -> None:
    x, w, y = np.arange(8, dtype=np.float32), np.arange(10, 20, dtype=np.float32), np.zeros(8, np.float32)
    run_kernel(_kernel(limit, 1), [x, w, y], grid=1, block=4)
    wanted = x * w[1:9]
    if limit:
        wanted[1::2] = x[1::2]
    np.testing.assert_array_equal(y, wanted)


def test_memory_that_a_meaning_reads_is_checked() -> None:
    with pytest.raises(OutOfBoundsError, match=r"kernel @k: kernel\.weigh: %arg1\[10\] is out of bounds"):
        run_kernel(
            _kernel(False, 3), [np.zeros(8, np.float32), np.zeros(10, np.float32), np.zeros(8, np.float32)], 1, 4
        )


def _text(source: PythonSource, op: WeighOp) -> list[str]:
    for operand, name in zip(op.operands, ("v", "w", "i", "n"), strict=False):
        operand.name_hint = name
        source.names.define(operand)
    source.op(op)
    return source.lines


@pytest.mark.parametrize(
    ("given", "cpu", "cuda"),
    [
        ({}, "weigh(v, w, i, 1)", 'weigh("float32", 4)'),
        ({"limit": ..., "every": 3}, "weigh_first(v, w, i, 3, n)", 'weigh("float32", 4, True)'),
    ],
)
def test_texts_are_calls_of_words(given: dict[str, Any], cpu: str, cuda: str) -> None:
    func = FuncOp("k", [])
    func.body.block.add_op(ReturnOp())
    (line,) = _text(KernelSource(func), weigh(**given))
    assert line.partition(" = ")[2] == cpu
    source = WordSource(narrow=False, separate=False, close=False)
    (line,) = _text(source, weigh(**given))
    assert line.partition(" = ")[2] == f"weighed({', '.join(['v', 'w', 'i', 'n'][: 3 + len(given) // 2])})"
    assert source.definitions == {cuda: "weighed"}


def test_an_instruction_without_a_text_is_refused() -> None:
    func = FuncOp("k", [])
    with pytest.raises(CompileError, match=r"kernel\.barrier has no text in KernelSource"):
        KernelSource(func).op(BarrierOp())


def test_all_words_of_a_definition_are_known() -> None:
    assert spec_of(WeighOp).cpu is not None
    assert Text("weigh", limits=("limit",)).vocabulary == ["weigh", "weigh_first"]
    assert Text(lambda x: f"weigh_{x.every}", words=("weigh_1", "weigh_2")).vocabulary == ["weigh_1", "weigh_2"]
