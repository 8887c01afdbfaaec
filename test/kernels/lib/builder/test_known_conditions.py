"""Comparisons of numbers that are known while a kernel is written leave no op."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block

from mlirt.kernels.lib.builder.block_writer import BlockWriter

PREDICATES = {"slt": True, "ule": True, "eq": False, "ne": True, "sge": False, "ugt": False}


def names(block: Block) -> list[str]:
    return [op.name for op in block.ops if op.name != "arith.constant"]


@pytest.mark.parametrize(("predicate", "holds"), PREDICATES.items())
def test_a_known_comparison_chooses_at_once(predicate: str, holds: bool) -> None:
    block = Block(arg_types=[IndexType(), IndexType()])
    writer = BlockWriter(block)
    condition = writer.compare(predicate, 3, 6)
    assert writer.select(condition, *block.args) is block.args[not holds]
    assert names(block) == []


def test_what_a_run_decides_stays() -> None:
    block = Block(arg_types=[IndexType(), IndexType()])
    writer = BlockWriter(block)
    unknown = writer.compare("slt", block.args[0], 6)
    writer.select(unknown, *block.args)
    assert names(block) == ["arith.cmpi", "arith.select"]
    known = writer.compare("eq", 6, 6)
    assert writer.both(known, unknown) is unknown
    assert writer.both(unknown, known) is unknown
