"""A shortage of memory is one clear error, whatever is being done, and leaves the process as it was."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import helper
from onnx_models import model_of, one_node, write_model

import mlirt
from mlirt.errors import OutOfMemoryError, out_of_memory
from mlirt.runtime import host_memory
from mlirt.runtime.host_memory import HostBlock

pytest.importorskip("resource", reason="this system has no limits of memory")
_TASKS = ("import", "build", "load", "run", "rt-opt", "rt-exec")
_ROOMS = (1, 8, 40, 90)
# The limit counts addresses, of which threads and libraries take many: it is set when these are there.
_LIMITED = """
import contextlib, io, json, os, resource, sys
import numpy as np
import mlirt
from mlirt.tools import rt_exec, rt_opt
folder, tasks, rooms = sys.argv[1], sys.argv[2].split(), [int(room) << 20 for room in sys.argv[3].split()]
ones = {"in0": np.ones(3, np.float32)}
small = mlirt.compile(f"{folder}/small.onnx", target="cpu")
small.run(ones)
engine = mlirt.load(f"{folder}/large.plan")
flags = {"rt-opt": ["--to", "layout"], "rt-exec": ["--target=cpu", "--buildOnly"]}

def perform(task):
    if task == "import":
        mlirt.compile(f"{folder}/large.onnx", target="reference")
    elif task == "build":
        mlirt.compile(f"{folder}/large.onnx", target="cpu")
    elif task == "load":
        mlirt.load(f"{folder}/large.plan")
    elif task == "run":
        engine.run({"h0": np.empty((1, 2048), np.float32)})
    else:
        model = f"{folder}/large.onnx"
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
            tool, given = (rt_opt, model) if task == "rt-opt" else (rt_exec, f"--onnx={model}")
            code = tool.main([given, *flags[task]])
        said = [line for line in out.getvalue().splitlines() if "too little memory" in line]
        return f"short: {said[0]}" if code == 1 and len(said) == 1 else out.getvalue()[:500] if code else "done"
    return "done"

def in_child(task, room):
    small.run(ones)
    used = int(open("/proc/self/statm").read().split()[0]) * 4096
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (used + room, hard))
    try:
        said = perform(task)
    except mlirt.OutOfMemoryError as error:
        assert isinstance(error, MemoryError)
        said = f"short: {error}"
    except BaseException as error:
        said = f"{type(error).__name__}: {error}"
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    small.run(ones)
    print(task, room >> 20, json.dumps(said), flush=True)

print(flush=True)
for task in tasks:
    for room in rooms:
        child = os.fork()
        if child == 0:
            in_child(task, room)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0, (task, room)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models")
    write_model(one_node("Relu", [np.ones(3, np.float32)])[0], path / "small.onnx")
    weights = {f"w{k}": np.full((2048, 2048), k + 1, np.float32) for k in range(3)}
    nodes = [helper.make_node("MatMul", [f"h{k}", f"w{k}"], [f"h{k + 1}"], name=f"m{k}") for k in range(3)]
    nodes.append(helper.make_node("Expand", ["h3", "shape"], ["y"], name="wide"))
    weights["shape"] = np.array([30_000, 2048])
    write_model(model_of(nodes, {"h0": ("float32", [1, 2048])}, ["y"], weights), path / "large.onnx")
    mlirt.compile(path / "large.onnx", target="cpu").save(path / "large.plan")
    return path


def test_one_clear_error(folder: Path) -> None:
    """Reading, building, opening and running with 1 to 90 MiB of room for a network of 48 MiB and a result of 234."""
    command = [sys.executable, "-c", _LIMITED, str(folder), " ".join(_TASKS), " ".join(map(str, _ROOMS))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    lines = [line.split(" ", 2) for line in done.stdout.splitlines() if line]
    lines = [(task, room, json.loads(said)) for task, room, said in lines]
    assert [(task, int(room)) for task, room, _ in lines] == [(task, room) for task in _TASKS for room in _ROOMS]
    for task, room, said in lines:
        short = said.startswith("short: ") and "too little memory" in said and "\n" not in said
        assert short or said == "done", (task, room, said)
        assert short or task not in ("run", "build", "rt-exec") or int(room) > 1
    assert sum(said.startswith("short") for _, _, said in lines) >= 10


@pytest.mark.parametrize("size", [1 << 50, 1 << 63, 1 << 70])
def test_a_block_that_no_machine_has(size: int) -> None:
    with pytest.raises(MemoryError, match="is not to be had"):
        HostBlock(size)


def test_a_run_that_needs_too_much(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = mlirt.load(folder / "large.plan")
    with monkeypatch.context() as patch:

        def refuse(*_: object) -> None:
            raise MemoryError("no")

        patch.setattr(host_memory, "aligned_empty", refuse)
        with pytest.raises(OutOfMemoryError, match="the run: there is too little memory for this network: no"):
            engine.run({"h0": np.ones((1, 2048), np.float32)})
    assert engine.run({"h0": np.zeros((1, 2048), np.float32)})["y"].shape == (30_000, 2048)


def test_what_counts_as_a_shortage() -> None:
    short: list[Exception] = [
        MemoryError(),
        OSError(12, "Cannot allocate memory"),
        RuntimeError("can't start new thread"),
    ]
    short.append(ImportError("libx.so: failed to map segment from shared object"))
    assert all(isinstance(out_of_memory("it", error), OutOfMemoryError) for error in short)
    other = [
        OSError(2, "No such file"),
        RuntimeError("no"),
        ImportError("no module"),
        ValueError("Cannot allocate memory"),
    ]
    assert not any(out_of_memory("it", error) for error in other)
