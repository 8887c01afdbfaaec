"""The ways to lower an op: which there are, in which order they are tried, and how an op names one."""

from __future__ import annotations

import pytest
from contractions import product_text
from gpu_kernels import kernel_names, lower_to_threads
from lowered_network import parse_module
from xdsl.dialects.builtin import StringAttr

from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.interpreter import entry_function
from mlirt.dialects.target import Target
from mlirt.errors import CompileError
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.lib.tactics.registry import Candidate, candidates

_LONG_SUM = product_text((40, 1024), (1024, 48), (40, 48), "f16", (False, False))


def _found(tactic: str = "", only: str = "") -> list[Candidate]:
    module, context = parse_module(_LONG_SUM)
    block = entry_function(module).body.block
    (op,) = [op for op in block.ops if isinstance(op, MatmulOp)]
    if tactic:
        op.attributes["fused.tactic"] = StringAttr(tactic)
    return candidates(op, Lowering(Target("cuda"), context, module, block, only))


def test_choices_come_cheapest_first_and_the_generic_tactic_last() -> None:
    found = _found()
    names, costs = [one.name for one in found], [one.cost for one in found[:-1]]
    assert names[-1] == "generic"
    assert {"cuda_tiles:128x128", "cuda_tiles:32x32p2"} <= set(names)
    assert costs == sorted(cost for cost in costs if cost is not None)


def test_a_file_alone_leaves_its_choices_and_a_choice_leaves_nothing() -> None:
    assert _found("cuda_tiles") == [one for one in _found() if one.file == "cuda_tiles"]
    assert [one.name for one in _found("cuda_tiles:64x64p4")] == ["cuda_tiles:64x64p4"]
    assert [one.name for one in _found("generic")] == ["generic"]
    assert [one.name for one in _found(only="gen")] == ["generic"]


def test_the_kernel_follows_the_choice() -> None:
    module, context = parse_module(_LONG_SUM)
    assert kernel_names(lower_to_threads(module, context, "cuda_tiles:64x64")) == ["matmul"]
    assert kernel_names(lower_to_threads(module, context, "cuda_tiles:64x64p4")) == ["matmul", "matmul_sum"]


def test_a_choice_that_a_tactic_does_not_know_is_an_error() -> None:
    module, context = parse_module(_LONG_SUM)
    with pytest.raises(CompileError, match=r"the tactic 'cuda_tiles:7x7' does not lower fused\.matmul to cuda"):
        lower_to_threads(module, context, "cuda_tiles:7x7")
