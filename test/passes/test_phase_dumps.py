"""What `--dump-phases` leaves: every file finds its weights, and up to the layouts computes what the network did."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.registry import register_dialects
from mlirt.dialects.source_parser import parse_source
from mlirt.dialects.weights_file import read_weights, weights_beside, weights_in
from mlirt.errors import InvalidInputError
from mlirt.passes.phases import phase_names
from mlirt.passes.pipeline import PipelineOptions, run_phases

NETWORK = """
func.func @main(%x: tensor<?x32xf32, #trt.dims<["n", "32"]>>) -> (tensor<?x16xf32, #trt.dims<["n", "16"]>>) {
  %w = trt.constant {value = #trt.weights<"w", "DIGEST">} : tensor<32x16xf32>
  %p = trt.matrix_multiply %x, %w : (tensor<?x32xf32, #trt.dims<["n", "32"]>>, tensor<32x16xf32>)
      -> tensor<?x16xf32, #trt.dims<["n", "16"]>>
  %y = trt.activation relu %p : (tensor<?x16xf32, #trt.dims<["n", "16"]>>)
      -> tensor<?x16xf32, #trt.dims<["n", "16"]>>
  func.return %y : tensor<?x16xf32, #trt.dims<["n", "16"]>>
}
"""


def _context() -> RtContext:
    ctx = RtContext()
    register_dialects(ctx)
    return ctx


def _dump(folder: Path) -> np.ndarray:
    """Dump all phases of the network; returns its weights."""
    ctx = _context()
    weights = np.random.default_rng(5).normal(size=(32, 16)).astype(np.float32)
    digest = ctx.weights.put(weights, "w").digest.data
    module, _ = parse_source(ctx, NETWORK.replace("DIGEST", digest), "network.mlir")
    run_phases(module, ctx, options=PipelineOptions(dump_folder=folder))
    return weights


def test_each_file_reads_on_its_own(tmp_path: Path) -> None:
    weights = _dump(tmp_path / "phases")
    x = np.random.default_rng(6).normal(size=(3, 32)).astype(np.float32)
    files = sorted((tmp_path / "phases").glob("*.mlir"))
    assert [file.name[3:-5] for file in files] == list(phase_names())
    for file in files:
        ctx = _context()
        beside = weights_beside(file)
        assert beside == file.with_name("weights.safetensors")
        read_weights(ctx, file.with_name("weights.safetensors"))
        module, _ = parse_source(ctx, file.read_text(encoding="utf-8"), file.name)
        assert all(ctx.weights.get(attr).size for attr in weights_in(module).values())
        if file.name[3:-5] not in ("lowering", "memory"):  # these two are for a machine, not for NumPy
            (found,) = interpret(module, ctx, {"x": x}).values()
            np.testing.assert_allclose(found, np.maximum(x @ weights, 0), rtol=1e-5, atol=1e-5)


def test_a_file_of_its_own_comes_before_that_of_the_folder(tmp_path: Path) -> None:
    assert weights_beside(tmp_path / "a.mlir") is None
    (tmp_path / "weights.safetensors").touch()
    (tmp_path / "b.safetensors").touch()
    assert weights_beside(tmp_path / "a.mlir") == tmp_path / "weights.safetensors"
    assert weights_beside(tmp_path / "b.mlir") == tmp_path / "b.safetensors"


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInputError, match=r"cannot write the phases to .*file"):
        _dump(tmp_path / "file" / "phases")
