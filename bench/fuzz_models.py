"""Mutated ONNX models through the compiler: no crash, no hang, no exception but an `MlirtError` of one line.

`python bench/fuzz_models.py [--cases N] [--first N] [--seconds S] [--keep DIR] [--cpu-every N]`

The models are ONNX's node tests and random graphs (bench/fuzz_graphs.py), each with one to four changes of attributes,
types, shapes, edges, nodes, constants, names or bytes. Each runs in a forked child with 6 GiB of memory: it is read,
goes through the passes of the CPU target up to `layout` and is interpreted there; every `--cpu-every`-th is compiled to
machine code and run instead. Where that gives a result onnxruntime runs it, too. Outcomes:

agrees               the result of onnxruntime
differs              another one: shown, for a person to explain
peer refuses, peer crashes    a result where onnxruntime gives none
too large            the inputs would have more than 10 million elements, so it was compiled and not run
the class of an error         an `MlirtError` of one line
crash, hang, exception, internal, lines    what must not be; the exit code is 1
"""

# onnxruntime has no types: what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

import gc
import math
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import onnx
from cpu_fuzz import difference
from cpu_peer import cpu_session
from fuzz_cases import random_case
from fuzz_graphs import Array
from isolated_case import Case, Limits, parser, run_cases, said_by, untold
from model_mutations import mutated

import mlirt
from mlirt.builder.reference_engine import ReferenceEngine
from mlirt.dialects.context import RtContext
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.pipeline import PipelineOptions, run_phases
from mlirt.runtime.data_types import numpy_dtype

_LENGTHS = (2, 3, 1, 4)
_MAX_ELEMENTS = 10_000_000


def main() -> int:
    """Run the fuzz; 1 where a case is bad."""
    flags = parser(__doc__ or "", 5000)
    flags.add_argument("--cpu-every", type=int, default=20, help="compile every N-th for the CPU; 0 for none")
    options = flags.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder  # for the reproducers of passes that fail
        cases = model_cases(options.first, options.cases, options.cpu_every)
        return 0 if run_cases(cases, Limits(options.seconds), options.keep).is_good else 1


def model_cases(first: int, count: int, cpu_every: int) -> Iterator[Case]:
    """The cases with these numbers."""
    bases = base_models()
    for number in range(8):  # what is imported and made once need not be in each child
        judge("layout", number, random_case(number, 5).model.SerializeToString(), untold)
    gc.freeze()
    for number in range(first, first + count):
        name, model = bases[number * 7919 % len(bases)]
        if number % 4 == 0:
            name, model = "random graph", random_case(number, 5).model
        target = "cpu" if cpu_every and number % cpu_every == 0 else "layout"
        yield Case(f"{number} {name} {target}.onnx", mutated(model, number), partial(judge, target, number))


def base_models() -> list[tuple[str, onnx.ModelProto]]:
    """ONNX's node tests."""
    from onnx.backend.test.case.node import collect_testcases

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: list[Any] = list(collect_testcases(None))  # pyright: ignore[reportArgumentType]
    return [(case.name, case.model) for case in found if case.model is not None and case.model.ByteSize() < 200_000]


def judge(target: str, seed: int, content: bytes, tell: Callable[[str, str], None]) -> None:
    """Compile and run a model, and compare the result with onnxruntime's."""
    tell("silent", "while importing")
    try:
        if target == "cpu":
            engine: Any = mlirt.compile(content, target="cpu")
        else:
            ctx = RtContext()
            module = import_model(content, ctx)
            tell("silent", "in a pass")
            run_phases(module, ctx, last="layout", options=PipelineOptions(target="cpu"))
            engine = ReferenceEngine(module, ctx)
        feeds = _feeds(engine, seed)
        if feeds is None:
            tell("too large", "")
            return
        tell("silent", "while running")
        outputs = engine.run(feeds)
    except Exception as error:
        tell(*said_by(error))
        return
    tell("runs", "")
    tell(*_compared(content, feeds, outputs))


def _feeds(engine: Any, seed: int) -> dict[str, Array] | None:
    random = np.random.default_rng(seed)
    feeds: dict[str, Array] = {}
    for tensor in engine.inputs:
        shape = [dim if isinstance(dim, int) else _LENGTHS[seed % len(_LENGTHS)] for dim in tensor.shape]
        if math.prod(shape) > _MAX_ELEMENTS:
            return None
        dtype = numpy_dtype(tensor.dtype)
        values = random.integers(0, 3, shape) if dtype.kind in "iub" else random.normal(size=shape)
        feeds[tensor.name] = np.asarray(values).astype(dtype)
    return feeds


def _compared(content: bytes, feeds: dict[str, Array], outputs: dict[str, Array]) -> tuple[str, str]:
    try:
        session = cpu_session(content, threads=1, level="ORT_DISABLE_ALL")
        wanted = dict(zip(outputs, session.run(None, feeds), strict=True))
    except Exception as error:
        return "peer refuses", str(error)
    for name, value in outputs.items():
        if not isinstance(wanted[name], np.ndarray | np.generic):
            return "agrees", "as far as they are tensors"
        theirs = np.asarray(wanted[name])
        # onnxruntime hands out numbers of 8 bits as their bytes.
        mine = value.view(np.uint8) if value.dtype.kind == "V" and theirs.dtype == np.uint8 else np.asarray(value)
        if why := difference(mine, theirs):
            return "differs", f"{name}: {why}"
    return "agrees", ""


if __name__ == "__main__":
    sys.exit(main())
