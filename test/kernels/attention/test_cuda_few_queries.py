"""Attention of few queries, whose keys clusters share, in the SIMT interpreter; and its way to machine code."""

from __future__ import annotations

from pathlib import Path

import pytest
from attentions import Attention
from contractions import TOLERANCE
from gpu_kernels import check_on_threads, kernel_names, lower_to_threads
from lowered_network import parse_module

from mlirt.builder.numba_cuda import compile_kernels
from mlirt.codegen.numba_cuda.kernel_source import sources_of
from mlirt.passes.pipeline import PassError

CASES = {
    "one key": Attention(1, 2, 1, 1, 64, 64),
    "fewer keys than blocks": Attention(1, 1, 1, 5, 128, 128),
    "a tail": Attention(1, 2, 1, 131, 128, 128),
    "single precision": Attention(2, 1, 2, 70, 32, 32, "f32"),
    "bfloat16": Attention(1, 1, 1, 90, 256, 256, "bf16"),
    "narrow heads": Attention(1, 2, 3, 300, 8, 8),
    "causal with a past": Attention(1, 1, 4, 90, 16, 16, last_key=86),
    "no key for some": Attention(1, 1, 8, 40, 16, 16, last_key=-5, zero_masked=True),
    "not a number for some": Attention(1, 1, 3, 40, 16, 16, last_key=-1),
    "packed": Attention(1, 2, 6, 6, 16, 16, packed=True),
    "mask per key": Attention(1, 2, 1, 70, 16, 16, mask="add"),
    "mask selects": Attention(2, 1, 2, 45, 16, 16, mask="select", full_mask=True, zero_masked=True),
    "position": Attention(1, 1, 2, 66, 16, 16, mask="index"),
    "an epilogue": Attention(1, 2, 3, 70, 16, 16, mask="add", ending="f32"),
}


@pytest.mark.parametrize("name", CASES)
def test_cases(name: str) -> None:
    check(CASES[name], 4)


@pytest.mark.parametrize("parts", [1, 2, 8])
def test_every_number_of_parts(parts: int) -> None:
    check(Attention(1, 1, 1, 200, 64, 64), parts)
    check(CASES["no key for some"], parts)


@pytest.mark.parametrize(
    "case",
    [Attention(1, 1, 9, 16, 16, 16), Attention(1, 1, 1, 16, 12, 12), Attention(1, 1, 1, 16, 16, 32)],
    ids=["many queries", "rows that are not aligned", "values of another width"],
)
def test_others_go_another_way(case: Attention) -> None:
    module, context = parse_module(with_parts(case, 1))
    with pytest.raises(PassError, match="does not lower"):
        lower_to_threads(module, context)


@pytest.mark.parametrize(("keys", "clusters"), [(1024, True), (16, False)])
def test_clusters_share_many_keys(keys: int, clusters: bool) -> None:
    module, context = parse_module(Attention(1, 16, 1, keys, 128, 128).text())
    *_, kernel = lower_to_threads(module, context).body.block.ops
    assert ("cluster" in kernel.attributes) == clusters


def test_becomes_cubins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_CACHE", str(tmp_path))
    module, context = parse_module(with_parts(Attention(1, 2, 1, 1000, 128, 128, mask="add"), 8))
    for by_architecture in compile_kernels(sources_of(lower_to_threads(module, context))).values():
        assert list(by_architecture) == ["sm_90a"]
        assert all(made.spilled_bytes == 0 for made in by_architecture.values())


def check(case: Attention, parts: int) -> None:
    lowered = check_on_threads(with_parts(case, parts), case.inputs(), tolerance=TOLERANCE[case.element])
    assert kernel_names(lowered) == ["attention"]


def with_parts(case: Attention, parts: int) -> str:
    return case.text().replace("reduced =", f'fused.tactic = "cuda_few_queries:parts{parts}", reduced =')
