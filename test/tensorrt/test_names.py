"""TensorRT's names are all there, cost nothing until they are used, and have TensorRT's numbers
(tensorrt-features.md#17.16, 28.3).
"""

from __future__ import annotations

import subprocess
import sys

import pytest

import mlirt
import mlirt as trt
from mlirt.errors import UnsupportedError


@pytest.mark.parametrize("name", mlirt.tensorrt.__all__)
def test_name_is_found_in_both_places(name: str) -> None:
    assert getattr(mlirt, name) is getattr(mlirt.tensorrt, name)


def test_import_is_free() -> None:
    heavy = ("numpy", "xdsl", "onnx", "numba", "mlirt.frontend", "mlirt.builder", "mlirt.runtime", "mlirt.tensorrt")
    script = f"import sys, mlirt; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_versions() -> None:
    """Scripts choose their way by the version; `import mlirt.tensorrt as trt` has TensorRT's."""
    assert mlirt.tensorrt.__version__ == "8.5.3"
    assert mlirt.__version__ != mlirt.tensorrt.__version__


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'IUnknownLayer'"):
        _ = mlirt.IUnknownLayer


def test_layer_types_and_methods() -> None:
    """Section 1: `LayerType` has 45 values, a network 46 methods that add something, and two of TensorRT 10."""
    assert [int(kind) for kind in trt.LayerType] == list(range(45))
    assert len([name for name in dir(trt.INetworkDefinition) if name.startswith("add_")]) == 48


def test_enumerations_print_and_count_as_tensorrts() -> None:
    assert str(trt.DataType.HALF) == "DataType.HALF"
    assert repr(trt.DataType.HALF) == "<DataType.HALF: 1>"
    assert 1 << int(trt.BuilderFlag.TF32) == 128
    assert trt.SampleMode.DEFAULT is trt.SampleMode.STRICT_BOUNDS
    assert trt.EngineCapability.SAFE_GPU is trt.EngineCapability.SAFETY
    assert trt.ProfilingVerbosity.VERBOSE is trt.ProfilingVerbosity.DETAILED
    assert len(trt.BuilderFlag) == 15


def test_programs_go_through_the_members_of_preview_features() -> None:
    """tensorrt-features.md#3.12: each is there once; the cookbook's names with a k stand for the same."""
    config = trt.Builder(trt.Logger()).create_builder_config()
    for feature in trt.PreviewFeature.__members__.values():
        config.set_preview_feature(feature, feature is trt.PreviewFeature.FASTER_DYNAMIC_SHAPES_0805)
    found = {name: config.get_preview_feature(one) for name, one in trt.PreviewFeature.__members__.items()}
    assert found == {"FASTER_DYNAMIC_SHAPES_0805": True, "DISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805": False}
    for name in found:
        assert getattr(trt.PreviewFeature, f"k{name}") is trt.PreviewFeature[name]


def test_helpers_of_row_2_20() -> None:
    assert trt.volume((2, 3, 4)) == 24
    assert trt.nptype(trt.DataType.HALF).__name__ == "float16"
    assert trt.float32 is trt.DataType.FLOAT
    assert trt.bool is trt.DataType.BOOL
    assert trt.int8.itemsize == 1
    assert trt.ResizeMode is trt.InterpolationMode
    assert trt.SliceMode is trt.SampleMode
    assert trt.Logger.ERROR is trt.Logger.Severity.ERROR


@pytest.mark.parametrize("name", ["UffParser", "CaffeParser"])
def test_what_is_not_there_says_so(name: str) -> None:
    """tensorrt-features.md#11.15 among others."""
    with pytest.raises(UnsupportedError):
        getattr(trt, name)()
