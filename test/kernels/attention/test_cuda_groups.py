"""Attention by warpgroups in the SIMT interpreter, against the meaning of the op; and its way to machine code."""

from __future__ import annotations

from pathlib import Path

import gpu_kernels
import pytest
from attentions import SMALL, Attention
from contractions import TOLERANCE
from gpu_kernels import check_on_threads, kernel_names, lower_to_threads
from lowered_network import parse_module

from mlirt.builder.numba_cuda import compile_kernels
from mlirt.codegen.numba_cuda.kernel_source import sources_of
from mlirt.dialects.device_files import gpu_device
from mlirt.kernels.attention.cuda.group_shape import group_shapes

H200 = gpu_device("h200")


@pytest.mark.parametrize("name", SMALL)
def test_small(name: str) -> None:
    check(SMALL[name], "128x128s2")


@pytest.mark.parametrize("shape", [shape.name for shape in group_shapes(64, 64, H200)])
def test_every_shape(shape: str) -> None:
    check(Attention(2, 2, 200, 300, 64, 64), shape)
    check(Attention(1, 3, 140, 140, 64, 64, packed=True, last_key=0), shape)


@pytest.mark.parametrize("shape", [shape.name for shape in group_shapes(128, 128, H200)])
def test_wide_heads(shape: str) -> None:
    check(Attention(1, 2, 140, 150, 128, 128), shape)
    check(Attention(1, 1, 70, 140, 96, 80), shape)


@pytest.mark.parametrize("causal", [False, True], ids=["all keys", "causal"])
@pytest.mark.parametrize("shape", [shape.name for shape in group_shapes(64, 64, H200) if shape.stays])
def test_persistent_blocks(shape: str, causal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two blocks have three tiles of queries each, with other numbers of tiles of keys than whole rounds of stages."""
    monkeypatch.setattr(gpu_kernels, "DEVICE", "h200+processors=2")
    rows = 192 if shape.startswith("192") else 128
    check(Attention(1, 3, rows + 9, 300, 64, 64, last_key=20 if causal else None), shape)


@pytest.mark.parametrize(
    "case",
    [Attention(1, 1, 16, 16, 12, 16), Attention(1, 1, 16, 16, 256, 16), Attention(1, 1, 16, 16, 16, 16, "f32")],
    ids=["rows that are not aligned", "very wide heads", "single precision"],
)
def test_others_go_another_way(case: Attention) -> None:
    module, context = parse_module(case.text())
    lowered = lower_to_threads(module, context)
    assert all("architecture" not in op.attributes for op in lowered.body.block.ops)


def test_becomes_cubins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_CACHE", str(tmp_path))
    case = Attention(1, 2, 200, 200, 64, 64, packed=True, mask="add", last_key=0)
    module, context = parse_module(with_choice(case, "128x64s3"))
    for by_architecture in compile_kernels(sources_of(lower_to_threads(module, context))).values():
        assert list(by_architecture) == ["sm_90a"]
        assert all(made.spilled_bytes == 0 for made in by_architecture.values())


def check(case: Attention, shape: str) -> None:
    lowered = check_on_threads(with_choice(case, shape), case.inputs(), tolerance=TOLERANCE[case.element])
    assert kernel_names(lowered) == ["attention"]


def with_choice(case: Attention, shape: str) -> str:
    return case.text().replace("reduced =", f'fused.tactic = "cuda_groups:{shape}", reduced =')
