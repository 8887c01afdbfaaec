"""Attention on matrix units in the SIMT interpreter, against the meaning of the op; and its way to machine code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from attentions import SMALL, Attention
from contractions import TOLERANCE
from gpu_kernels import check_on_threads, kernel_names, lower_to_threads
from lowered_network import parse_module

from mlirt.builder.numba_cuda import compile_kernels
from mlirt.codegen.numba_cuda.kernel_source import sources_of
from mlirt.dialects.device_files import gpu_device
from mlirt.kernels.attention.cuda.flash_shape import FlashWork, shapes_for


@pytest.mark.parametrize("name", SMALL)
def test_small(name: str) -> None:
    case = SMALL[name]
    lowered = check_on_threads(case.text(), case.inputs(), tactic="cuda_flash", tolerance=TOLERANCE[case.element])
    assert kernel_names(lowered) == ["attention"]


@pytest.mark.parametrize("shape", [shape.name for shape in shapes_for(64, 64)])
@pytest.mark.parametrize("name", ["several blocks", "causal", "mask per key", "mask per query"])
def test_every_shape(name: str, shape: str) -> None:
    case = SMALL[name]
    check_on_threads(_with_choice(case, shape), case.inputs(), tolerance=TOLERANCE[case.element])


@pytest.mark.parametrize(
    "case",
    [
        Attention(1, 1, 16, 16, 16, 16, "f32"),
        Attention(1, 1, 16, 16, 256, 16),
        Attention(1, 1, 16, 16, 15, 16),
    ],
    ids=["single precision", "very wide heads", "odd rows"],
)
def test_others_go_another_way(case: Attention) -> None:
    lowered = check_on_threads(case.text(), case.inputs(), tolerance=TOLERANCE[case.element])
    assert "attention" not in kernel_names(lowered)


def test_small_problems_get_small_blocks() -> None:
    def best(heads: int, length: int) -> int:
        work = FlashWork(heads, length, length, 64, 64, False, device=gpu_device("h200"))
        return min(shapes_for(64, 64), key=work.microseconds).queries

    assert best(12 * 32, 2048) == 128
    assert best(12, 128) < 128


@pytest.mark.parametrize("case", [Attention(1, 2, 200, 200, 64, 64, packed=True), SMALL["bfloat16"]])
def test_becomes_cubins(case: Attention, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_CACHE", str(tmp_path))
    module, context = parse_module(_with_choice(replace(case, last_key=0), "64x64w4"))
    for by_architecture in compile_kernels(sources_of(lower_to_threads(module, context))).values():
        assert all(made.spilled_bytes == 0 for made in by_architecture.values())


def _with_choice(case: Attention, shape: str) -> str:
    return case.text().replace("reduced =", f'fused.tactic = "cuda_flash:{shape}", reduced =')
