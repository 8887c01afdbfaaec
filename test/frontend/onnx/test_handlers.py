"""The folder is the registry of ONNX ops."""

from __future__ import annotations

import onnx
import pytest

from mlirt.frontend.onnx.handlers import handler_for, supported_ops


def test_the_newest_handler_that_fits_is_taken() -> None:
    names = [getattr(handler_for("", "Resize", opset), "__name__", None) for opset in (9, 10, 11, 19)]
    assert names == [None, "scaled", "resize", "resize"]


def test_other_domains_have_their_own() -> None:
    assert handler_for("com.microsoft", "FusedConv", 1) is not None
    assert handler_for("", "FusedConv", 17) is None


@pytest.mark.parametrize("domain", [""])
def test_every_name_is_one_that_onnx_knows(domain: str) -> None:
    known = {schema.name for schema in onnx.defs.get_all_schemas_with_history() if schema.domain == domain}
    # onnxruntime's optimiser writes this one without a domain.
    known.add("SimplifiedLayerNormalization")
    assert {name for where, name in supported_ops() if where == domain} <= known
