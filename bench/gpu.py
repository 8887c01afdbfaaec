"""Errors and latencies on a GPU, with PyTorch on the same network in the same run.

    python bench/gpu.py BUNDLE.tar.gz [--only ID,..] [--runs 50] [--profile ID]

BUNDLE is what prepare_gpu.py made. Needs numpy, onnx and onnxruntime; torch for the comparison. Latencies are those of
the kernels of one inference, inputs on the device, as a replayed CUDA graph; for PyTorch also eager, with its default
settings (TF32 in convolutions) and without TF32. Error is the largest difference over the largest value, against
onnxruntime.
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false, reportArgumentType=false, reportReturnType=false

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

Array = np.ndarray[Any, np.dtype[Any]]


def main() -> None:
    """Measure every record of the bundle; the table comes last."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle")
    parser.add_argument("--only", default="")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--profile", default="")
    options = parser.parse_args()
    bundle = opened(Path(options.bundle))
    sys.path.insert(0, str(bundle / "site"))
    chosen = set(filter(None, options.only.split(",")))
    rows: list[dict[str, Any]] = []
    torch_times: dict[tuple[str, str], dict[str, Any]] = {}
    for record in json.loads((bundle / "index.json").read_text()):
        if chosen and record["id"] not in chosen:
            continue
        row = {"id": record["id"], "precision": record["precision"]}
        try:
            row |= measure(record, bundle, options)
        except Exception as error:
            row["why"] = f"{type(error).__name__}: {error}"[:300]
        key = (record["id"], record["precision"])
        try:
            torch_times[key] = measure_torch(record, bundle, options.runs)
        except Exception as error:
            torch_times[key] = {"torch why": f"{type(error).__name__}: {error}"[:200]}
        row |= torch_times[key]
        rows.append(row)
        print(json.dumps(row), flush=True)
    print_table(rows)


def opened(bundle: Path) -> Path:
    """The folder of a bundle; an archive is unpacked."""
    if bundle.is_dir():
        return bundle
    folder = Path(tempfile.mkdtemp(prefix="mlirt-gpu-"))
    shutil.unpack_archive(bundle, folder)
    return folder


def model_path(record: Mapping[str, Any], bundle: Path) -> Path:
    """The model's file; derived ones are made from their originals first."""
    name = record["id"]
    if not record["derived"]:
        return bundle / "models" / name / "model.onnx"
    path = bundle / "derived" / name / "model.onnx"
    if not path.exists():
        sys.path.insert(0, str(bundle))
        import derive

        path.parent.mkdir(parents=True, exist_ok=True)
        derive.rand_light(str(bundle / "models" / name.removesuffix("_rand") / "model.onnx"), str(path))
    return path


def data_of(record: Mapping[str, Any], bundle: Path) -> tuple[dict[str, Array], dict[str, Array]]:
    """Inputs and expected outputs by name."""
    with np.load(bundle / "data" / f"{record['id']}.npz") as data:
        arrays = {key: data[key] for key in data.files}
    feeds = {key.removeprefix("in "): array for key, array in arrays.items() if key.startswith("in ")}
    expected = {key.removeprefix("out "): array for key, array in arrays.items() if key.startswith("out ")}
    if not expected:
        import onnxruntime

        session = onnxruntime.InferenceSession(str(model_path(record, bundle)), providers=["CPUExecutionProvider"])
        names = [one.name for one in session.get_outputs()]
        expected = dict(zip(names, session.run(None, feeds), strict=True))
    return feeds, expected


def measure(record: Mapping[str, Any], bundle: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Our errors and latencies."""
    from mlirt.runtime.engine import Engine, load

    feeds, expected = data_of(record, bundle)
    start = time.perf_counter()
    engine = load(bundle / "plans" / record["plan"]) if record["plan"] else Engine(rebuild(record, bundle))
    loaded = time.perf_counter() - start
    outputs = engine.run(feeds)
    again = engine.run(feeds)
    same = all(outputs[name].tobytes() == again[name].tobytes() for name in outputs)
    resident = engine.context.run_resident(feeds)
    kernels = [_span(resident.execute()) for _ in range(options.runs + 5)][5:]
    whole: list[float] = []
    for _ in range(options.runs):
        begin = time.perf_counter()
        engine.run(feeds)
        whole.append((time.perf_counter() - begin) * 1e3)
    if options.profile == record["id"]:
        print_profile(engine.profile(feeds))
    return {
        "error": max(error_of(outputs[name], want) for name, want in expected.items()),
        "deterministic": same,
        "launches": len(engine.layers),
        "load_s": round(loaded, 2),
        "ms": round(statistics.median(kernels), 4),
        "run_ms": round(statistics.median(whole), 3),
    }


def _span(times: Any) -> float:
    return times.end_compute - times.start_compute


def print_profile(layers: list[tuple[str, float]]) -> None:
    """The launches by time."""
    total = sum(ms for _, ms in layers)
    for layer, ms in sorted(layers, key=lambda item: -item[1])[:25]:
        print(f"  {ms * 1e3:8.1f} us {100 * ms / total:5.1f} %  {layer[:100]}")


def rebuild(record: Mapping[str, Any], bundle: Path) -> Any:
    """The plan from the model, by the passes, with the kernels of the bundle."""
    from gpu_plan import digest, plan_of

    from mlirt.codegen.numba_cuda.kernel_source import sources_of
    from mlirt.dialects.context import RtContext
    from mlirt.frontend.onnx.importer import import_model
    from mlirt.passes.pipeline import PipelineOptions, run_phases

    context = RtContext()
    module = import_model(str(model_path(record, bundle)), context, record["shapes"], None)
    run_phases(module, context, options=PipelineOptions("cuda", record["precision"]))
    cubins: dict[str, dict[str, bytes]] = {}
    for kernel, source in sources_of(module).items():
        made = list((bundle / "cubins").glob(f"{digest(source.text)}.*"))
        if not made:
            raise FileNotFoundError(f"the bundle has no cubin of kernel {kernel}")
        cubins[kernel] = {path.suffix.removeprefix("."): path.read_bytes() for path in made}
    return plan_of(module, context, cubins)


def error_of(found: Array, want: Array) -> float:
    """The largest difference over the largest value; for integers the part that differs."""
    if want.dtype.kind != "f":
        return float((found != want).mean())
    wide = want.astype(np.float64)
    return float(np.abs(found.astype(np.float64) - wide).max() / max(1e-6, np.abs(wide).max()))


def measure_torch(record: Mapping[str, Any], bundle: Path, runs: int) -> dict[str, Any]:
    """PyTorch's errors and latencies: eager, and as a CUDA graph."""
    import onnx
    import torch
    from onnx_to_torch import OnnxModule

    feeds, expected = data_of(record, bundle)
    half = record["precision"] == "fp16"
    module = OnnxModule(onnx.load(str(model_path(record, bundle))), half=half).eval()
    inputs = [_on_device(torch, feeds[name], half) for name in module.inputs]
    found: dict[str, Any] = {}
    torch.backends.cudnn.benchmark = True
    with torch.inference_mode():
        for tf32 in (True, False):
            torch.backends.cudnn.allow_tf32 = tf32
            label = "torch" if tf32 else "torch no tf32"
            outputs = module(*inputs)
            if tf32:
                found["torch error"] = max(
                    error_of(
                        one.float().cpu().numpy() if one.is_floating_point() else one.cpu().numpy(), expected[name]
                    )
                    for name, one in zip(module.outputs, outputs, strict=True)
                )
                found["torch eager ms"] = round(_timed(torch, lambda: module(*inputs), runs), 4)
            found[f"{label} graph ms"] = round(_timed(torch, _graph(torch, module, inputs), runs), 4)
            if half:
                break
    return found


def _on_device(torch: Any, array: Array, half: bool) -> Any:
    tensor = torch.from_numpy(array).cuda()
    return tensor.half() if half and tensor.is_floating_point() else tensor


def _graph(torch: Any, module: Any, inputs: list[Any]) -> Callable[[], Any]:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            module(*inputs)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        module(*inputs)
    return graph.replay


def _timed(torch: Any, call: Callable[[], Any], runs: int) -> float:
    """The median time on the device."""
    times: list[float] = []
    for number in range(runs + 5):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        if number >= 5:
            times.append(start.elapsed_time(end))
    return statistics.median(times)


def print_table(rows: list[dict[str, Any]]) -> None:
    """One line per model and precision; ratios above 1: we are faster."""
    print("\n| model | precision | error | ms | launches | torch eager | torch graph | no TF32 | ratio | torch error |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        if "ms" not in row:
            print(f"| {row['id']} | {row['precision']} | {row.get('why', '')[:90]} | | | | | | | |")
            continue
        best, strict = row.get("torch graph ms"), row.get("torch no tf32 graph ms")
        ratio = f"{best / row['ms']:.2f}" if best else ""
        cells = [
            *(row["id"], row["precision"], f"{row['error']:.1e}", f"{row['ms']:.3f}", row["launches"]),
            *(_cell(row.get("torch eager ms")), _cell(best), _cell(strict), ratio),
            f"{row['torch error']:.1e}" if "torch error" in row else row.get("torch why", "")[:40],
        ]
        print("| " + " | ".join(map(str, cells)) + " |")


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


if __name__ == "__main__":
    main()
