"""The start of a program and the time of a call: python -m mlirt.as_tensorrt bench/client_calls.py

Prints the wall time of a Python process that imports tensorrt, loads a plan and runs it (median of 5), and what a call
of `execute_v2` takes beyond one of `Engine.run` (median of 15 rounds by turns).
"""

# pyright: reportUnknownLambdaType=false, reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false, reportMissingTypeStubs=false

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tensorrt as trt
from cuda.bindings import runtime as cudart

import mlirt

SHAPE = (1, 64)
PROGRAM = """
import sys
import numpy as np
import tensorrt as trt
from cuda.bindings import runtime as cudart

engine = trt.Runtime(trt.Logger(trt.Logger.ERROR)).deserialize_cuda_engine(open(sys.argv[1], "rb").read())
memory = [cudart.cudaMalloc(256)[1] for _ in range(2)]
assert engine.create_execution_context().execute_v2(memory)
"""


def main() -> int:
    """Print both figures as JSON."""
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
    x = network.add_input("x", trt.float32, SHAPE)
    network.mark_output(network.add_activation(x, trt.ActivationType.TANH).get_output(0))
    plan = bytes(builder.build_serialized_network(network, builder.create_builder_config()))
    engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
    with tempfile.NamedTemporaryFile(suffix=".plan") as file:
        Path(file.name).write_bytes(plan)
        starts = [
            _seconds(lambda: subprocess.run([sys.executable, "-c", PROGRAM, file.name], check=True)) for _ in range(5)
        ]
    context, memory = engine.create_execution_context(), [cudart.cudaMalloc(256)[1] for _ in range(2)]
    runner, given = mlirt.load(plan), {"x": np.ones(SHAPE, np.float32)}
    ways = [lambda: context.execute_v2(memory), lambda: runner.run(given)]
    rounds = [[_seconds(way, 400) for way in ways] for _ in range(15)]
    calls, runs = (statistics.median(column) * 1e6 for column in zip(*rounds, strict=True))
    start = statistics.median(starts)
    notes = {"start s": round(start, 2), "execute_v2 us": round(calls, 1), "Engine.run us": round(runs, 1)}
    good = (start < 1 or runner.target == "cuda") and calls < runs + 20
    print(json.dumps({"counts": {"passed" if good else "failed": 1}, "notes": notes}))
    return int(not good)


def _seconds(call: Callable[[], object], times: int = 1) -> float:
    began = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - began) / times


if __name__ == "__main__":
    sys.exit(main())
