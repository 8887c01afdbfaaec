"""What is known of processors: every table can be read, its names are LLVM's, and its device has the same vectors."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from typing import Any

import pytest

from mlirt.builder.code_processor import CodeProcessor
from mlirt.dialects.device_files import cpu_device
from mlirt.dialects.processor_files import HOST, levels, processor_names, read_processor
from mlirt.errors import InvalidInputError

ARCHITECTURES = ("x86_64", "aarch64")


def llvm() -> Any:
    binding = import_module("llvmlite.binding")
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding


@pytest.mark.parametrize("name", processor_names())
def test_a_processor_has_the_vectors_of_its_device(name: str) -> None:
    found = read_processor(name)
    assert found.name == name
    assert cpu_device(found.device).vector_bits == found.vector_bits
    assert {*found.special} <= {*found.optional}
    assert found.name != HOST


@pytest.mark.parametrize("name", processor_names())
def test_llvm_knows_its_features(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """LLVM says on standard error that it does not recognise one; the width of SVE's registers is none of its names."""
    found = read_processor(name)
    given = CodeProcessor(found.triple("linux"), found.baseline, tuple(f"+{one}" for one in found.features))
    assert given.scalable_bits == (found.vector_bits if "sve" in found.features else 0)
    text = ",".join([given.llvm_features, *(f"+{feature}" for feature in found.optional)])
    target = llvm().Target.from_triple(found.triple("linux"))
    target.create_target_machine(cpu=found.baseline, features=text).emit_object(llvm().parse_assembly(""))
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_each_level_has_what_the_level_before_has(architecture: str) -> None:
    found = levels(architecture)
    assert len(found) > 1
    for lower, higher in pairwise(found):
        assert {*lower.features} <= {*higher.features}
        assert lower.vector_bits <= higher.vector_bits


def test_a_named_processor_is_no_level_and_has_all_of_the_one_that_it_is_like() -> None:
    n1, v2 = read_processor("neoverse-n1"), read_processor("neoverse-v2")
    assert not n1.is_level
    assert {*n1.features} <= {*v2.features}
    assert v2.special == ("dotprod", "fp16fml", "i8mm")
    assert cpu_device(v2.device).registers == 32


def test_an_unknown_name_is_told_what_there_is() -> None:
    with pytest.raises(InvalidInputError) as error:
        read_processor("neoverse-v9")
    text = str(error.value)
    assert "\n" not in text
    assert all(name in text for name in (HOST, *processor_names()))
    assert "did you mean 'neoverse-v" in text
