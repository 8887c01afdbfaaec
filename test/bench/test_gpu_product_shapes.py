"""What bench/gpu_product_shapes.py reads, and what it counts in machine code."""

from __future__ import annotations

import pytest
from gpu_product_shapes import Size, bank_conflicts, main_loop, shape_of, text_of, trial_of

from mlirt.builder.machine_code.listing import parse_listing
from mlirt.kernels.lib.cuda.tiles.shape import MULTIPLY_ADD

LOOP = """//--- .text.product
.L_0:
 LDS.128 R4, [R2] ;
 FFMA R10, R4.reuse, R6, R12 ;
 FFMA R11, R4, R8, R14 ;
 FFMA R13, R4, R8, R16 ;
 FFMA R15, R5, R8, R18 ;
 @P0 BRA `(.L_0) ;
 EXIT ;
"""


@pytest.mark.parametrize("text", ["128x128x16 4x2 8x8 s4 r2 l16 t", "64x64x32 2x2 8x4 s3 r4 l8 c4", "32x32x32 2x1 4x4"])
def test_shapes_are_written_as_they_are_read(text: str) -> None:
    assert text_of(shape_of(text)).startswith(text)
    assert shape_of(text_of(shape_of(text))) == shape_of(text)


def test_what_is_no_shape_is_refused() -> None:
    with pytest.raises(SystemExit, match="'128x128' is no shape"):
        shape_of("128x128")


def test_conflicts_of_banks() -> None:
    """The first product reads three even registers, the second one R4 of the first, the third one reads three again."""
    code = main_loop(parse_listing(LOOP))
    assert [one.name for one in code] == ["LDS", *["FFMA"] * 4, "BRA"]
    assert bank_conflicts(code) == 2


@pytest.mark.parametrize("size", [Size.of("70x40x33", "nn"), Size.of("5x64x64x64", "tt")])
def test_every_shape_has_a_trial(size: Size) -> None:
    for shape in MULTIPLY_ADD:
        trial = trial_of(size, shape)
        assert trial is not None
        assert trial.candidate == f"cuda_tiles:{shape.name}"
