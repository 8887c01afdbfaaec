"""Random layers and models whose machine code is checked: what bench/gpu_machine_code.py does with hundreds."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

import gpu_machine_code
import onnx
import pytest
from random_contractions import ELEMENTS, random_contraction

from mlirt.builder import numba_cuda
from mlirt.codegen.numba_cuda.vocabulary import ASYNCHRONOUS, VOCABULARY
from mlirt.tools import check_machine_code

_SEED = 37  # a product by wgmma with few kernels
_STARTS = re.compile(r"cp\.async|wgmma\.mma_async|mbarrier")
_HARMLESS = {"set_registers", "warp_value", "join_columns"}
"""Words beside those of wgmma that start nothing."""


def test_models_of_a_seed_are_the_same_and_valid() -> None:
    found = set[str]()
    for seed in range(60):
        layer, again = random_contraction(seed), random_contraction(seed)
        assert layer.model.SerializeToString(deterministic=True) == again.model.SerializeToString(deterministic=True)
        found.add(layer.name.split()[1])
        if " bf16 " not in layer.name:  # ONNX has no such convolutions
            onnx.shape_inference.infer_shapes(layer.model, check_type=True, strict_mode=True)
    assert found == set(ELEMENTS)


def test_words_that_start_something_are_known() -> None:
    """A kernel without any of them is passed over."""
    for path in (Path(numba_cuda.__file__).parent / "numba_cuda_intrinsics").glob("[a-z]*.py"):
        text = path.read_text(encoding="utf-8")
        if _STARTS.search(text):
            body = ast.parse(text).body
            defined = {node.name for node in body if isinstance(node, ast.FunctionDef)}
            defined |= {
                target.id
                for node in body
                if isinstance(node, ast.Assign)
                for target in node.targets
                if isinstance(target, ast.Name)
            }
            assert defined & VOCABULARY <= ASYNCHRONOUS | _HARMLESS
            assert defined & ASYNCHRONOUS


def test_layers_and_models(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    layer, kept = random_contraction(_SEED, ["fp16"]), tmp_path / "kept"
    (tmp_path / "some.onnx").write_bytes(layer.model.SerializeToString())
    chosen = ["--count", "1", "--seed", str(_SEED), "--elements", "fp16", "--every-tactic", "0", "--jobs", "1"]
    models = ["--models", str(tmp_path / "some.onnx"), "--precision", "fp16"]
    assert gpu_machine_code.main([*chosen, *models, "--keep", str(kept)]) == 0
    out = capsys.readouterr().out
    assert re.search(r"some fp16: \d+ kernels, [1-9]\d* asynchronous, 0 cubins with violations", out)
    assert "wgmma" in out
    assert out.splitlines()[-1].startswith("2 networks, 0 not lowered, 0 left out")
    assert check_machine_code.main([str(kept)]) == 0

    def faults(cubins: Sequence[bytes]) -> list[list[str]]:
        return [["some fault"] for _ in cubins]

    monkeypatch.setattr(gpu_machine_code, "faults_of_all", faults)
    assert gpu_machine_code.main(chosen) == 1
    assert "VIOLATION sm_90a some fault" in capsys.readouterr().out
