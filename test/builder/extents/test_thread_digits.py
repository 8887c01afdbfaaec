"""The number of a thread in mixed radix, and the bounds that follow from its digits."""

from __future__ import annotations

import pytest
from kernel_text import parse_kernel

from mlirt.builder.extents.contract import contract_of
from mlirt.builder.extents.thread_digits import thread_radices
from mlirt.runtime.contract_checks import contracts_section
from mlirt.runtime.extents import read_contracts

_TILE = """
kernel.func @tile(%x: memref<?xf32>, %rows: index) attributes {block_size = 128 : i64} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c17 = arith.constant 17 : index
  %c32 = arith.constant 32 : index
  %thread = kernel.thread_id : index
  %block = kernel.block_id {axis = 0 : i64} : index
  %first = arith.muli %block, %c32 : index
  %lane = arith.remui %thread, %c32 : index
  %0 = arith.divui %thread, %c32 : index
  %warp = kernel.warp_value %0 : index
  %half = arith.remui %warp, %c2 : index
  %row = arith.addi %first, %warp : index
  %1 = arith.muli %row, %c17 : index
  %at = arith.addi %1, %lane : index
  %left = arith.subi %c17, %lane : index
  %is_row = arith.cmpi slt, %row, %rows : index
  %valid = arith.select %is_row, %left, %c0 : index
  %v = kernel.load_fragment %x[%at] valid %valid {offsets = array<i64: 0>} : memref<?xf32> -> vector<1xf32>
  %w = kernel.load %x[%half] strides [1] : memref<?xf32> -> f32
  kernel.return
}
"""


def test_digits_are_what_the_kernel_divides_by() -> None:
    assert thread_radices(parse_kernel(_TILE), 128) == [1, 32, 64]
    assert thread_radices(parse_kernel(_TILE), 96) == [1, 32]  # 64 does not divide it


@pytest.mark.parametrize(("rows", "blocks"), [(5, 1), (33, 2), (64, 2)])
def test_a_row_and_a_lane_of_a_thread_are_bounded_apart_from_each_other(rows: int, blocks: int) -> None:
    head = {"objects": [], "args": ["ptr", "i64"], "block": [128, 1, 1], "shared_bytes": 0, "cluster": 1}
    record = head | contract_of(parse_kernel(_TILE))
    (contract,) = read_contracts(contracts_section({"": [record]}, [])).kernels[""]
    extents = contract.extents_of([0, rows], [blocks, 1, 1])
    most = min(rows, 32 * (blocks - 1) + 4)
    assert extents == {0: (0, 4 * 17 * most)}
