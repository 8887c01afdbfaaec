"""What pages say of the attributes of an op."""

from __future__ import annotations

import pytest
from xdsl.irdl import IRDLOperation

from mlirt.dialects.kernel.fragment import LoadFragmentOp
from mlirt.dialects.kernel.tile import TileTransformOp
from mlirt.dialects.trt.resize import ResizeOp
from mlirt.tools.documentation.constraint_text import constraint_text


@pytest.mark.parametrize(
    ("op", "name", "words"),
    [
        (LoadFragmentOp, "offsets", "integers"),
        (TileTransformOp, "matrix", "numbers"),
        (ResizeOp, "scales", "numbers"),
        (ResizeOp, "antialias", "boolean"),
    ],
)
def test_a_property_is_said_in_words(op: type[IRDLOperation], name: str, words: str) -> None:
    assert constraint_text(op.get_irdl_definition().properties[name].constr) == words
