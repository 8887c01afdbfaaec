"""Programs that start trtexec and read its lines and files."""

# What stands for TensorRT has no types.
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportArgumentType=false, reportCallIssue=false

import json
import os
import re
import subprocess
import tempfile

from engine_runs import main, numbers
from onnx import TensorProto, helper, numpy_helper, save

_FOLDER = tempfile.TemporaryDirectory()


def _model(name, batch):
    path = os.path.join(_FOLDER.name, name)
    if not os.path.exists(path):
        value = helper.make_tensor_value_info
        nodes = [
            helper.make_node("Conv", ["x", "w"], ["c"], name="conv"),
            helper.make_node("Relu", ["c"], ["y"], name="relu"),
        ]
        graph = helper.make_graph(
            nodes, "g", [value("x", TensorProto.FLOAT, (batch, 3, 6, 6))],
            [value("y", TensorProto.FLOAT, (batch, 4, 4, 4))], [numpy_helper.from_array(numbers(4, 3, 3, 3), "w")],
        )  # fmt: skip
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


def _run(*arguments, good=True):
    done = subprocess.run(["trtexec", *arguments], capture_output=True, text=True)
    text = done.stdout + done.stderr
    assert (done.returncode == 0) == good, text
    word = "PASSED" if good else "FAILED"
    assert re.search(rf"&&&& {word} TensorRT.trtexec \[TensorRT v8503\] # \S*trtexec", text), text
    return text


_SHORT = ("--iterations=3", "--duration=0", "--warmUp=0")


def times_of_a_model():
    plan, layers = os.path.join(_FOLDER.name, "m.plan"), os.path.join(_FOLDER.name, "layers.json")
    times, profile, outputs = (os.path.join(_FOLDER.name, n) for n in ("times.json", "profile.json", "output.json"))
    text = _run(
        f"--onnx={_model('m.onnx', 1)}", f"--saveEngine={plan}", f"--exportTimes={times}", f"--exportOutput={outputs}",
        f"--exportProfile={profile}", f"--exportLayerInfo={layers}", "--profilingVerbosity=detailed", "--dumpProfile",
        "--dumpLayerInfo", "--separateProfileRun", "--useCudaGraph", "--noDataTransfers", "--useSpinWait", *_SHORT,
    )  # fmt: skip
    number = r"[0-9.e+-]+"
    assert re.search(rf"Throughput: {number} qps", text), text
    for name in ("Latency", "Enqueue Time", "H2D Latency", "GPU Compute Time", "D2H Latency"):
        line = rf"{name}: min = {number} ms, max = {number} ms, mean = {number} ms, median = {number} ms, "
        line += r", ".join(rf"percentile\({p}%\) = {number} ms" for p in (90, 95, 99))
        assert re.search(line, text), (name, text)
    assert re.search(rf"Total Host Walltime: {number} s", text) and re.search(
        rf"Total GPU Compute Time: {number} s", text
    )
    first = json.load(open(times))[0]
    assert {"startEnqMs", "endEnqMs", "h2dMs", "computeMs", "d2hMs", "latencyMs"} <= set(first)
    records = json.load(open(profile))
    assert records[0]["count"] > 0 and {"name", "timeMs", "averageMs", "percentage"} <= set(records[1])
    assert json.load(open(layers))["Bindings"] == ["x", "y"]
    (y,) = json.load(open(outputs))
    assert y["name"] == "y" and y["dimensions"] == "1x4x4x4" and len(y["values"]) == 64
    assert "conv" in text


def engine_that_was_saved():
    plan = os.path.join(_FOLDER.name, "saved.plan")
    text = _run(f"--onnx={_model('m.onnx', 1)}", f"--saveEngine={plan}", "--buildOnly")
    assert "Throughput" not in text and os.path.getsize(plan) > 0
    data = os.path.join(_FOLDER.name, "x.bin")
    numbers(1, 3, 6, 6).tofile(data)
    text = _run(f"--loadEngine={plan}", f"--loadInputs=x:{data}", "--dumpOutput", *_SHORT)
    assert "y: (1x4x4x4)" in text, text


def shapes_of_a_dynamic_model():
    flags = [f"--{word}Shapes=x:{n}x3x6x6" for word, n in (("min", 1), ("opt", 2), ("max", 4))]
    output = os.path.join(_FOLDER.name, "out.json")
    _run(f"--onnx={_model('d.onnx', 'n')}", *flags, "--shapes=x:3x3x6x6", "--fp16", f"--exportOutput={output}", *_SHORT)
    assert json.load(open(output))[0]["dimensions"] == "3x4x4x4"
    text = _run(f"--onnx={_model('d.onnx', 'n')}", *flags, "--shapes=x:9x3x6x6", *_SHORT, good=False)
    assert "9" in text


def precisions_and_formats():
    text = _run(
        f"--onnx={_model('m.onnx', 1)}", "--fp16", "--precisionConstraints=prefer",
        "--layerPrecisions=conv:fp16,*:fp32",
        "--layerOutputTypes=conv:fp16", "--inputIOFormats=fp32:chw", "--outputIOFormats=fp16:chw", "--verbose",
        "--sparsity=enable", "--avgRuns=2", "--percentile=90,99", "--memPoolSize=workspace:64", "--noTF32", *_SHORT,
    )  # fmt: skip
    assert "percentile(90%)" in text and "percentile(95%)" not in text


def int8_without_calibration():
    _run(
        f"--onnx={_model('m.onnx', 1)}",
        "--int8",
        "--best",
        "--timingCacheFile=" + os.path.join(_FOLDER.name, "t"),
        *_SHORT,
    )
    assert os.path.getsize(os.path.join(_FOLDER.name, "t")) > 0


def wrong_arguments():
    assert "nothing.onnx" in _run("--onnx=nothing.onnx", good=False)
    text = _run("--noSuchFlag", good=False)
    assert "noSuchFlag" in text, text
    assert "DLA" in _run(f"--onnx={_model('m.onnx', 1)}", "--useDLACore=0", "--fp16", good=False)


def streams_and_refit():
    _run(f"--onnx={_model('m.onnx', 1)}", "--refit", "--streams=2", "--threads", "--timeRefit", "--exposeDMA",
         "--idleTime=1", "--sleepTime=1", "--useManagedMemory", "--timeDeserialize", good=True, *_SHORT)  # fmt: skip


def help_is_given():
    done = subprocess.run(["trtexec", "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    for flag in ("--onnx", "--minShapes", "--saveEngine", "--exportTimes", "--useCudaGraph", "--sparsity"):
        assert flag in done.stdout, flag


if __name__ == "__main__":
    main(globals())
