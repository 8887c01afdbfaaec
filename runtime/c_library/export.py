"""Writes an engine as a C library: `NAME.h`, `libNAME.so`, `NAME.o`, a header for C++ and an example in C.

The code is the plan's own, so that results have the same bits; weights are a section of the library. What the host does
(formulas of lengths, places of buffers, the order of launches) is in the plan's tables, and `sources/` has the program
in C that reads them: what is the same for processors and for CUDA devices, and in a folder for each what is not.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from mlirt.atomic_file import write_file
from mlirt.errors import InvalidInputError, UnsupportedError
from mlirt.runtime.c_library.cuda_files import CudaFiles, refuse_cuda
from mlirt.runtime.c_library.library_files import LibraryFiles
from mlirt.runtime.c_library.processor_files import ProcessorFiles, refuse_processor
from mlirt.runtime.engine import Engine
from mlirt.runtime.engine_interface import EngineLike
from mlirt.runtime.plan_file import Plan, read_plan

_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")


def export_c(engine: EngineLike | Plan | Path | str, folder: str | os.PathLike[str], name: str = "net") -> Path:
    """Write the library `name` of an engine, or of a plan file, into a folder; its path is returned.

    Functions of the library begin with the name. A plan for CUDA devices becomes one for the processor of the C
    compiler, under Linux. Raises `UnsupportedError` where the plan has plugins or calls of libraries, or, for
    processors, is for Arm's under Windows, or where no C compiler for its system and processor is found;
    `InvalidInputError` for a name or a folder that makes no sense.
    """
    plan = _plan_of(engine)
    if not _NAME.fullmatch(name):
        raise InvalidInputError(f"{name!r} is no name for a C library; expected small letters, digits and _")
    target = Path(folder)
    with tempfile.TemporaryDirectory(prefix="mlirt-c-") as scratch:
        built = _files_of(plan, name, Path(scratch))
        files = built.files()
        try:
            target.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInputError(f"cannot make the folder {target}: {error.strerror}") from error
        for file in files:
            with file.open("rb") as stream:
                write_file(target / file.name, iter(lambda: stream.read(1 << 22), b""), "the C library")
        (target / built.library.name).chmod(0o755)
    return target / built.library.name


def _plan_of(engine: EngineLike | Plan | Path | str) -> Plan:
    if isinstance(engine, str | Path):
        return read_plan(engine)
    if isinstance(engine, Plan | Engine):
        return engine if isinstance(engine, Plan) else engine.plan
    raise UnsupportedError("a C library is made of an engine with a plan; build with target='cpu'")


def _files_of(plan: Plan, name: str, folder: Path) -> LibraryFiles:
    """Raises UnsupportedError where the plan has what C libraries lack."""
    if plan.manifest.target.kind == "cuda":
        refuse_cuda(plan.manifest)
        return CudaFiles(plan, name, folder)
    refuse_processor(plan.manifest)
    return ProcessorFiles(plan, name, folder)
