"""mlirt: an open inference compiler and runtime.

`compile` turns a trained network into an engine, as a `BuildConfig` says, `load` opens a saved plan file; both give an
object with `run` and `save`. `calibrate` finds the scales with which a network computes in int8. TensorRT's Python
names are here as well (`mlirt.tensorrt`): `import mlirt as trt`. Names are resolved on first use, so that importing the
package costs nothing.

    engine = mlirt.compile("model.onnx")  # for the GPU where there is one, else for the CPU
    scores = engine.run({"image": images})["scores"]
    engine.save("model.plan")
    engine = mlirt.load("model.plan")  # no compiler involved

`help(mlirt.compile)` and `help(mlirt.Engine)` say more.
"""

import os.path
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mlirt.errors import missing_package
from mlirt.version import __version__

if TYPE_CHECKING:
    from mlirt.builder.calibration.calibrate import calibrate
    from mlirt.builder.calibration.calibration import Calibration
    from mlirt.builder.calibration.sensitivity import sensitivity
    from mlirt.builder.compile import compile
    from mlirt.builder.config.build_config import BuildConfig
    from mlirt.builder.from_torch.capture_recurrent import capture_recurrent
    from mlirt.builder.from_torch.torch_allocator import TorchAllocator
    from mlirt.builder.low_rank_updates import lora_merged
    from mlirt.builder.number_range.check_range import check_range
    from mlirt.builder.refit import refit, refittable_weights
    from mlirt.builder.stages import compile_stages
    from mlirt.builder.tactics.timing_cache import TimingCache
    from mlirt.errors import (
        AccuracyWarning,
        CompileError,
        DeadlineError,
        InvalidInputError,
        InvalidModelError,
        MissingPackageError,
        MlirtError,
        OutOfMemoryError,
        OverloadError,
        PlanError,
        PluginError,
        RunCancelledError,
        UnavailableError,
        UnmetConditionError,
        UnsupportedError,
        UnsupportedOperatorsError,
    )
    from mlirt.passes.pipeline_edits import Pipeline
    from mlirt.passes.remarks import Remarks
    from mlirt.runtime.c_library.export import export_c
    from mlirt.runtime.engine import Engine, load
    from mlirt.runtime.joined_arrays import JoinedArrays
    from mlirt.tensorrt import *  # noqa: F403  (checkers alone read this)
    from mlirt.tensorrt.plugins.functions.op_decorator import op
    from mlirt.tools.drawing import draw

if os.path.isfile(os.path.join(os.path.dirname(__file__), "runtime")):
    raise ImportError(
        "the packages of mlirt are symbolic links in its repository, but this checkout has text files in their place, "
        "as git makes them on systems without links: install a wheel (`pip wheel .` on a system with links), or check "
        "out anew after `git config core.symlinks true`, which Windows allows in its developer mode"
    )

_HOMES = {
    "BuildConfig": "mlirt.builder.config.build_config",
    "compile": "mlirt.builder.compile",
    "compile_stages": "mlirt.builder.stages",
    "check_range": "mlirt.builder.number_range.check_range",
    "calibrate": "mlirt.builder.calibration.calibrate",
    "Calibration": "mlirt.builder.calibration.calibration",
    "sensitivity": "mlirt.builder.calibration.sensitivity",
    "lora_merged": "mlirt.builder.low_rank_updates",
    "refit": "mlirt.builder.refit",
    "refittable_weights": "mlirt.builder.refit",
    "capture_recurrent": "mlirt.builder.from_torch.capture_recurrent",
    "TorchAllocator": "mlirt.builder.from_torch.torch_allocator",
    "TimingCache": "mlirt.builder.tactics.timing_cache",
    "Pipeline": "mlirt.passes.pipeline_edits",
    "Remarks": "mlirt.passes.remarks",
    "op": "mlirt.tensorrt.plugins.functions.op_decorator",
    "Engine": "mlirt.runtime.engine",
    "JoinedArrays": "mlirt.runtime.joined_arrays",
    "load": "mlirt.runtime.engine",
    "export_c": "mlirt.runtime.c_library.export",
    "draw": "mlirt.tools.drawing",
    "MlirtError": "mlirt.errors",
    "UnsupportedError": "mlirt.errors",
    "UnsupportedOperatorsError": "mlirt.errors",
    "InvalidModelError": "mlirt.errors",
    "InvalidInputError": "mlirt.errors",
    "OutOfMemoryError": "mlirt.errors",
    "OverloadError": "mlirt.errors",
    "PlanError": "mlirt.errors",
    "PluginError": "mlirt.errors",
    "UnmetConditionError": "mlirt.errors",
    "CompileError": "mlirt.errors",
    "DeadlineError": "mlirt.errors",
    "UnavailableError": "mlirt.errors",
    "RunCancelledError": "mlirt.errors",
    "MissingPackageError": "mlirt.errors",
    "AccuracyWarning": "mlirt.errors",
}

__all__ = [
    "AccuracyWarning",
    "BuildConfig",
    "Calibration",
    "CompileError",
    "DeadlineError",
    "Engine",
    "InvalidInputError",
    "InvalidModelError",
    "JoinedArrays",
    "MissingPackageError",
    "MlirtError",
    "OutOfMemoryError",
    "OverloadError",
    "Pipeline",
    "PlanError",
    "PluginError",
    "Remarks",
    "RunCancelledError",
    "TimingCache",
    "TorchAllocator",
    "UnavailableError",
    "UnmetConditionError",
    "UnsupportedError",
    "UnsupportedOperatorsError",
    "__version__",
    "calibrate",
    "capture_recurrent",
    "check_range",
    "compile",
    "compile_stages",
    "draw",
    "export_c",
    "load",
    "lora_merged",
    "op",
    "refit",
    "refittable_weights",
    "sensitivity",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        try:
            return getattr(import_module(_HOMES[name]), name)
        except ModuleNotFoundError as error:
            raise missing_package(f"mlirt.{name}", error) from error
    tensorrt = import_module("mlirt.tensorrt")
    if name == "tensorrt":
        return tensorrt
    if name == "plugin":
        return import_module("mlirt.plugin")
    try:
        return getattr(tensorrt, name)
    except AttributeError:
        raise AttributeError(f"module 'mlirt' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    """What completion and `help` list: the names of this package, then TensorRT's."""
    own = (name for name in globals() if name.startswith("__"))
    return sorted({*own, *__all__, *import_module("mlirt.tensorrt").__all__, "tensorrt", "plugin"})
