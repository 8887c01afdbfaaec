"""The page of the versions of all formats, from the constants that readers and writers compare."""

from __future__ import annotations

from mlirt.builder.tactics import timing_cache
from mlirt.frontend.onnx.model_reader import OLDEST_OPSET
from mlirt.passes.quantization import calibration_cache
from mlirt.runtime import manifest, plan_file
from mlirt.tensorrt.reported_version import VERSIONS
from mlirt.tools.replay import record_file
from mlirt.version import __version__

_HEAD = """\
# Versions of formats

What is written to files, and which versions this mlirt writes and reads. A file of another version is refused in one
line that names both versions; nothing of it is used.

| file | written by | version | one of another version |
|---|---|---|---|
"""
_UNVERSIONED = """
Files without a version of their own:

| file | what tells old from new |
|---|---|
"""
_SPOKEN = """
What is read from elsewhere, and spoken to others:

| format | versions |
|---|---|
"""
_OPSETS = f"opset {OLDEST_OPSET} to the newest that the installed package `onnx` knows ([operators](onnx-operators.md))"


def formats_page() -> str:
    """The whole page."""
    again = "refused; build it again"
    rows = (
        ("the package", "", __version__, ""),
        ("a plan's container ([the plan file](plan-format.md))", "`save`", plan_file.CONTAINER_VERSION, again),
        ("the same with plans for several machines ([machines](machines.md))", "`save`", plan_file.FOR_MACHINES, again),
        ("a plan's manifest ([its records](plan-format.md#the-manifest))", "`save`", manifest.FORMAT, again),
        ("a timing cache", "`TimingCache.serialize`, `--timingCacheFile`", timing_cache.FORMAT, "refused; delete it"),
        (
            "a calibration cache ([INT8](int8.md#the-cache))",
            "`Calibration.save`, `--calib`",
            f"TRT-{calibration_cache.VERSION}",
            f"refused unless its number begins with {calibration_cache.VERSION[0]}, as TensorRT 8's does",
        ),
        (
            "a record of kernels ([rt-replay](tools.md))",
            "`rt-replay record`",
            record_file.FORM,
            "refused; record again",
        ),
    )
    unversioned = (
        (
            "IR text (`.mlir`, its weights in `.mlir.safetensors`)",
            "the parser: ops and attributes are those of the package, and before 1.0 any version may change them",
        ),
        (
            "settings of a build (`save`, `--config`)",
            "an unknown setting is an error that names the one that was meant",
        ),
        (
            "caches of plans and kernels (`MLIRT_CACHE`)",
            "keys are digests of the compiler's sources, its packages, the machine and the network: "
            "what another compiler has made is not found",
        ),
        ("JSON of rt-exec (`--exportTimes`, `--exportProfile`, `--exportLayerInfo`)", "it has trtexec's fields"),
    )
    spoken = (
        ("ONNX", _OPSETS),
        ("TensorRT's Python API", f"told to programs as {', '.join(VERSIONS)} ([which](migrate-from-tensorrt.md))"),
        ("Open Inference Protocol", "2 ([serving](serve.md))"),
    )
    tables = ((_HEAD, rows), (_UNVERSIONED, unversioned), (_SPOKEN, spoken))
    return "".join(head + "".join(f"{_row(cells)}\n" for cells in table) for head, table in tables)


def _row(cells: tuple[object, ...]) -> str:
    return f"| {' | '.join(map(str, cells))} |"
