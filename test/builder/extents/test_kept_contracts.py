"""The bounds of a kernel are looked for once: not again in the same build, nor in a later one."""

from __future__ import annotations

import json
from pathlib import Path
from unittest import mock

import pytest
from kernel_text import parse_kernel

from mlirt.builder.extents.contract import contract_of
from mlirt.builder.extents.kept_contracts import KeptContracts
from mlirt.builder.extents.ranges import Effort
from mlirt.builder.kernel_cache import KernelCache

_KERNEL = """
kernel.func @copy(%x: memref<?xf32>, %y: memref<?xf32>, %n: index) attributes {block_size = 32 : i64} {
  %t = kernel.thread_id : index
  %is_inside = arith.cmpi slt, %t, %n : index
  scf.if %is_inside {
    %value = memref.load %x[%t] : memref<?xf32>
    memref.store %value, %y[%t] : memref<?xf32>
  }
  kernel.return
}
"""
_EFFORT = Effort(200, 2500)


def test_a_kernel_is_read_once_for_the_numbers_that_it_gets(tmp_path: Path) -> None:
    kernel, kept = parse_kernel(_KERNEL), KeptContracts(KernelCache(tmp_path))
    first = kept.of(kernel, (), {2: 8}, {0: 1}, _EFFORT)
    assert kept.of(kernel, (), {2: 8}, {0: 1}, _EFFORT) == first
    assert kept.read == 1
    assert kept.of(kernel, (), {2: 9}, {0: 1}, _EFFORT) != first
    kept.of(kernel, (2,), {}, {0: 1}, _EFFORT)
    kept.of(kernel, (2,), {}, {0: 2}, _EFFORT)
    kept.of(kernel, (2,), {}, {0: 2}, Effort(1000, 6000))
    assert kept.read == 5


@pytest.mark.parametrize("constants", [{}, {2: 8}], ids=str)
def test_a_later_build_takes_the_same_contract_from_the_cache(tmp_path: Path, constants: dict[int, int]) -> None:
    expected = contract_of(parse_kernel(_KERNEL), (), constants)
    found = [KeptContracts(KernelCache(tmp_path)) for _ in range(2)]
    for kept, times in zip(found, (1, 0), strict=True):
        contract, is_cut_short = kept.of(parse_kernel(_KERNEL), (), constants)
        assert json.dumps(contract) == json.dumps(expected)
        assert not is_cut_short
        assert kept.read == times


def test_another_compiler_reads_kernels_again(tmp_path: Path) -> None:
    KeptContracts(KernelCache(tmp_path)).of(parse_kernel(_KERNEL), (), {})
    with mock.patch("mlirt.builder.extents.kept_contracts.own_sources", return_value="other"):
        kept = KeptContracts(KernelCache(tmp_path))
        kept.of(parse_kernel(_KERNEL), (), {})
    assert kept.read == 1


def test_a_damaged_entry_is_made_again(tmp_path: Path) -> None:
    KeptContracts(KernelCache(tmp_path)).of(parse_kernel(_KERNEL), (), {})
    (entry,) = tmp_path.rglob("*.code")
    entry.write_bytes(entry.read_bytes()[:-9])
    kept = KeptContracts(KernelCache(tmp_path))
    kept.of(parse_kernel(_KERNEL), (), {})
    assert kept.read == 1


def test_launches_whose_numbers_are_known_are_followed_once(tmp_path: Path) -> None:
    kernel, kept = parse_kernel(_KERNEL), KeptContracts(KernelCache(tmp_path))
    first = kept.of_launch(kernel, {2: 8}, {0: 1})
    assert first is not None
    assert kept.of_launch(kernel, {2: 8}, {0: 1}) == first
    assert kept.of_launch(kernel, {2: 9}, {0: 1}) != first
    assert kept.read == 2
    later = KeptContracts(KernelCache(tmp_path))
    assert json.dumps(later.of_launch(kernel, {2: 8}, {0: 1})) == json.dumps(first)
    assert later.read == 0


def test_what_is_too_large_to_be_followed_is_known_to_be(tmp_path: Path) -> None:
    assert KeptContracts(KernelCache(tmp_path)).of_launch(parse_kernel(_KERNEL), {2: 8}, {0: 1}, 10) is None
    later = KeptContracts(KernelCache(tmp_path))
    assert later.of_launch(parse_kernel(_KERNEL), {2: 8}, {0: 1}, 10) is None
    assert later.read == 0
    assert later.of_launch(parse_kernel(_KERNEL), {2: 8}, {0: 1}) is not None
