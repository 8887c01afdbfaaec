"""The `onnx` package's test cases through TensorRT's API.

    python -m mlirt.as_tensorrt bench/client_onnx_cases.py K N [DATA]

Runs every N-th case, from the K-th on, of the operators that onnx-tensorrt's backend test names, as that backend does:
parse, build, `execute_v2` on device memory, compare within 1e-3. Inputs that are read as shapes get an optimization
profile with the values of the case. Outcomes: passed, refused by the parser, failed.

DATA is the folder onnx/backend/test/data of another version of the package: of 1.12, the last in which the axes of
reductions are attributes, as TensorRT 8's parser reads them. Without it the cases are those of the installed package.
"""

# What stands for TensorRT and CUDA's runtime has no types.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false, reportMissingTypeStubs=false

from __future__ import annotations

import json
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import tensorrt as trt
from cuda.bindings import runtime as cudart
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

OPERATORS = (
    "abs acos acosh add argmax argmin asin asinh atan atanh averagepool AvgPool BatchNorm.*eval ceil clip concat "
    "constant Conv[1-3]d cos cosh depthtospace div dropout ELU elu Embedding exp flatten floor gather "
    "globalaveragepool globalmaxpool hardsigmoid identity LeakyReLU leakyrelu Linear log logsoftmax LogSoftmax "
    "log_softmax lrn matmul max MaxPool[1-9]d mean min mul neg pow PoissonNLLLLoss_no_reduce reciprocal reduce "
    "ReLU relu selu Sigmoid sigmoid sin sinh Softmax softmax Softmin Softplus softplus softsign sqrt squeeze sub "
    "sum tan Tanh tanh thresholdedrelu transpose unsqueeze ZeroPad2d "
    "operator_(addmm|basic|clip|concat2|conv|exp|flatten|index"
    "|max|maxpool|min|non_float_params|params|permute2|pow|reduced_mean|reduced_sum|selu|sqrt|view)"
).split()
LEFT_OUT = "constant_pad constantofshape expand matmulinteger maxpool maxunpool gemm operator_mm shape size".split()


Sets = list[tuple[list[Any], list[Any]]]  # inputs and outputs
# A model, and what reads its sets, which may hold what the model is refused for.
Case = tuple[bytes, Callable[[], Sets]]
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")


def main(first: int, step: int, data: str | None = None) -> int:
    """Print a line for each case that did not pass, and the counts."""
    warnings.simplefilter("ignore", DeprecationWarning)  # the API of bindings, as the backend uses it
    wanted = re.compile(f"test_({'|'.join(OPERATORS)})")
    left_out = re.compile(f"test_({'|'.join(LEFT_OUT)})")
    cases = _installed() if data is None else _in_folder(Path(data))
    names = [name for name in sorted(cases) if wanted.match(name) and not left_out.match(name)]
    counts: Counter[str] = Counter()
    for name in names[first::step]:
        outcome = _outcome(*cases[name]())
        counts[outcome.partition(":")[0]] += 1
        if outcome != "passed":
            print(name, outcome, flush=True)
    print(
        json.dumps(
            {
                "counts": {"passed": counts["passed"], "failed": counts["failed"]},
                "notes": {"refused": counts["refused"]},
            }
        )
    )
    return int(counts["failed"] > 0)


def _installed() -> dict[str, Callable[[], Case]]:
    """The cases of the installed package by name; some are made as they are asked for, others are files."""
    return {case.name: partial(_made, case) for kind in KINDS for case in load_model_tests(kind=kind)}


def _in_folder(data: Path) -> dict[str, Callable[[], Case]]:
    files = [path for kind in KINDS for path in (data / kind).glob("*/model.onnx")]
    if not files:
        sys.exit(f"{data} has no folder such as node/test_abs with a model.onnx in it")
    return {path.parent.name: partial(_read, path.parent) for path in files}


def _made(case: Any) -> Case:
    if case.model_dir is not None:
        return _read(Path(case.model_dir))
    sets = [([_array(x) for x in given], [_array(y) for y in wanted]) for given, wanted in case.data_sets]
    return case.model.SerializeToString(), lambda: sets


def _read(folder: Path) -> Case:
    folders = sorted(folder.glob("test_data_set_*"))
    return (folder / "model.onnx").read_bytes(), lambda: [
        (_tensors(f, "input"), _tensors(f, "output")) for f in folders
    ]


def _array(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def _outcome(model: bytes, sets: Callable[[], Sets]) -> str:
    try:
        network, config, builder = _parsed(model)
    except ValueError as error:
        return f"refused: {error}"
    for inputs, wanted in sets():
        try:
            engine = _engine(network, config, builder, inputs)
            if engine is None:
                return "failed: no engine"
            found = _run(engine, inputs)
            for given, expected in zip(found, wanted, strict=True):
                np.testing.assert_allclose(np.float64(given), np.float64(expected), rtol=1e-3, atol=1e-3)
        except Exception as error:  # any error is the case's outcome
            return "failed: " + " ".join(f"{type(error).__name__} {error}".split())[:160]
    return "passed"


def _parsed(model: bytes) -> tuple[Any, Any, Any]:
    """The network, its configuration and builder. Raises `ValueError` with the parser's error."""
    logger = trt.Logger(trt.Logger.INTERNAL_ERROR)
    builder = trt.Builder(logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
    parser = trt.OnnxParser(network, logger)
    if not parser.parse(model):
        raise ValueError(" ".join(parser.get_error(0).desc().split())[:160])
    return network, builder.create_builder_config(), builder


def _engine(network: Any, config: Any, builder: Any, inputs: list[Any]) -> Any:
    """The engine, for these values of inputs that are read as shapes; None where the build fails."""
    profile = builder.create_optimization_profile()
    for tensor, given in zip(map(network.get_input, range(network.num_inputs)), inputs, strict=True):
        if tensor.is_shape_tensor:
            values = np.ravel(given).tolist()
            profile.set_shape_input(tensor.name, values, values, values)
    if profile:
        config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    return plan and trt.Runtime(trt.Logger(trt.Logger.INTERNAL_ERROR)).deserialize_cuda_engine(plan)


def _run(engine: Any, inputs: list[Any]) -> list[Any]:
    """The outputs, in the order of the bindings."""
    context, given = engine.create_execution_context(), iter(inputs)
    arrays: dict[int, Any] = {}
    for k in filter(engine.binding_is_input, range(engine.num_bindings)):
        kind, shape = trt.nptype(engine.get_binding_dtype(k)), tuple(engine.get_binding_shape(k))
        arrays[k] = np.ascontiguousarray(next(given), kind).reshape(shape)
        if engine.is_shape_binding(k):
            context.set_shape_input(k, arrays[k].ravel().tolist())
    for k in range(engine.num_bindings):
        if not engine.binding_is_input(k):
            arrays[k] = np.empty(tuple(context.get_binding_shape(k)), trt.nptype(engine.get_binding_dtype(k)))
    memory = {k: _checked(cudart.cudaMalloc(max(array.nbytes, 1))) for k, array in arrays.items()}
    try:
        kinds = cudart.cudaMemcpyKind
        for k, array in arrays.items():
            _checked(cudart.cudaMemcpy(memory[k], array.ctypes.data, array.nbytes, kinds.cudaMemcpyHostToDevice))
        if not context.execute_v2([memory[k] for k in range(engine.num_bindings)]):
            raise RuntimeError("execute_v2 gave False")
        for k, array in arrays.items():
            _checked(cudart.cudaMemcpy(array.ctypes.data, memory[k], array.nbytes, kinds.cudaMemcpyDeviceToHost))
    finally:
        for address in memory.values():
            _checked(cudart.cudaFree(address))
    return [arrays[k] for k in range(engine.num_bindings) if not engine.binding_is_input(k)]


def _checked(answer: tuple[Any, ...]) -> Any:
    if int(answer[0]):
        raise RuntimeError(f"CUDA: {answer[0]}")
    return answer[1] if len(answer) > 1 else None


def _tensors(folder: Path, word: str) -> list[Any]:
    files = sorted(folder.glob(f"{word}_*.pb"), key=lambda path: int(path.stem.rpartition("_")[2]))
    return [numpy_helper.to_array(onnx.load_tensor(str(path))) for path in files]


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:4]))
