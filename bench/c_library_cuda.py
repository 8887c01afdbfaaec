"""C libraries for a CUDA device: made where a compiler is, measured where a device is.

`make` builds networks, and writes the plan, the library and the inputs of runs into a folder for each. `measure` needs
that folder, NumPy and a device; where there is a C compiler it writes the library anew and compiles the program, else
it takes those that it finds. `bench/c_library.py --device cuda` calls both and says what the columns are.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import mlirt
from mlirt.runtime.cuda_driver import CudaDriver, open_driver
from mlirt.runtime.engine import Engine

Array = np.ndarray[Any, np.dtype[Any]]
Feeds = Mapping[str, Array]
_PROGRAM = Path(__file__).parent / "c_library_run.c"
_PACKAGES = str(Path(mlirt.__file__).absolute().parents[1])
_PLAN, _RUNS, _LIBRARY = "net.plan", "runs.npz", "libnet.so"
_START = """
import sys, numpy, mlirt
saved = numpy.load(sys.argv[2])
mlirt.load(sys.argv[1]).run({key[2:]: saved[key] for key in saved if key.startswith("0.")})
"""
_PROCESSES, _RUNS_OF_ALL = 5, 40
HEAD = (
    "network   bits            start  Python  create  first    next  Python  device   besides    weights\n"
    "          run prog dev       ms      ms      ms     ms      ms      ms      ms     bytes      bytes"
)


def make(name: str, engine: Engine, runs: Sequence[Feeds], folder: Path) -> None:
    """All that `measure` needs of a network."""
    folder.mkdir(parents=True, exist_ok=True)
    engine.save(folder / _PLAN)
    arrays = {f"{k}.{name}": array for k, feeds in enumerate(runs) for name, array in feeds.items()}
    np.savez(folder / _RUNS, **arrays)  # pyright: ignore[reportArgumentType]
    _export(engine, folder)
    print(f"made {name}: {sum(one.stat().st_size for one in folder.iterdir()) >> 10} KiB", flush=True)


def _export(engine: Engine, folder: Path) -> None:
    mlirt.export_c(engine, folder)
    (folder / "net.o").unlink(missing_ok=True)
    linking = [f"-I{folder}", f"-L{folder}", "-lnet", "-Wl,-rpath,$ORIGIN"]
    subprocess.run(["cc", "-O2", str(_PROGRAM), "-o", str(folder / "run"), *linking], check=True)


def measure(name: str, folder: Path) -> tuple[str, bool]:
    """A row of the table, and whether all bits are the same."""
    engine = mlirt.load(folder / _PLAN)
    assert isinstance(engine, Engine)
    if shutil.which("cc") is not None:
        _export(engine, folder)
    (folder / "run").chmod(0o755)
    saved = np.load(folder / _RUNS)
    count = 1 + max(int(key.split(".")[0]) for key in saved)
    runs = [{key.split(".", 1)[1]: saved[key] for key in saved if key.startswith(f"{k}.")} for k in range(count)]
    expected = [[array.tobytes() for array in engine.run(feeds).values()] for feeds in runs]
    library = Library(folder / _LIBRARY)
    in_process = all(library.run(feeds, engine) == wanted for feeds, wanted in zip(runs, expected, strict=True))
    by_program = all(_of_program(folder, engine, feeds) == wanted for feeds, wanted in zip(runs, expected, strict=True))
    on_device, device_ms = library.run_on_device(runs[0], engine, open_driver())
    is_same = [in_process, by_program, on_device == expected[0]]
    library.close()
    command = _command(folder, engine, runs[0])
    start = min(_milliseconds(lambda: _ran([*command, "1"], folder)) for _ in range(_PROCESSES))
    python = min(_milliseconds(lambda: _ran([sys.executable, "-c", _START, _PLAN, _RUNS], folder)) for _ in range(2))
    created, first, after = map(float, _ran([*command, str(_RUNS_OF_ALL)], folder).split())
    in_python = median(_milliseconds(lambda: engine.run(runs[0])) for _ in range(_RUNS_OF_ALL))
    weights = sum(array.nbytes for array in engine.plan.weights.values())
    besides = (folder / _LIBRARY).stat().st_size - weights
    bits = " ".join(f"{'same' if one else 'DIFF':4}" for one in is_same)
    times = f"{start:7.1f} {python:7.1f} {created:7.1f} {first:6.2f} {after:7.3f} {in_python:7.3f} {device_ms:7.3f}"
    return f"{name:9} {bits} {times} {besides:9} {weights:10}", all(is_same)


def _command(folder: Path, engine: Engine, feeds: Feeds) -> list[str]:
    found = [str(folder.resolve() / "run"), "0"]
    for number, tensor in enumerate(engine.inputs):
        (folder / f"input_{number}.bin").write_bytes(feeds[tensor.name].tobytes())
        found += [f"input_{number}.bin", ",".join(map(str, feeds[tensor.name].shape))]
    return found


def _of_program(folder: Path, engine: Engine, feeds: Feeds) -> list[bytes]:
    _ran([*_command(folder, engine, feeds), "2"], folder)
    return [(folder / f"output_{number}.bin").read_bytes() for number in range(len(engine.outputs))]


def _ran(command: Sequence[str], folder: Path) -> str:
    places = os.pathsep.join(one for one in (_PACKAGES, os.environ.get("PYTHONPATH", "")) if one)
    environment = {**os.environ, "PYTHONPATH": places}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)[:200]}: exit code {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def _milliseconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e3


class Library:
    """A handle of a library, in this process."""

    def __init__(self, file: Path) -> None:
        self._c: Any = ctypes.CDLL(str(file.resolve()))
        self._c.net_error.restype = ctypes.c_char_p
        self._c.net_output_data.restype = ctypes.c_void_p
        self._handle = ctypes.c_void_p()
        self._check(self._c.net_create(ctypes.byref(self._handle), -1))

    def close(self) -> None:
        """Free the handle."""
        self._c.net_destroy(self._handle)

    def _check(self, status: int) -> None:
        if status:
            raise SystemExit(f"the library says {status}: {self._c.net_error(self._handle).decode()}")

    def _set_shapes(self, feeds: Feeds, engine: Engine) -> None:
        for number, tensor in enumerate(engine.inputs):
            shape = feeds[tensor.name].shape
            lengths = (ctypes.c_int64 * max(len(shape), 1))(*shape)
            self._check(self._c.net_set_input_shape(self._handle, number, lengths, len(shape)))

    def _sizes(self, engine: Engine) -> list[int]:
        found: list[int] = []
        for number in range(len(engine.outputs)):
            size = ctypes.c_size_t()
            self._check(self._c.net_output_bytes(self._handle, number, ctypes.byref(size)))
            found.append(size.value)
        return found

    def run(self, feeds: Feeds, engine: Engine) -> list[bytes]:
        """The outputs, which stay in memory of the handle."""
        self._set_shapes(feeds, engine)
        arrays = [np.ascontiguousarray(feeds[tensor.name]) for tensor in engine.inputs]
        given = (ctypes.c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])
        wanted = (ctypes.c_void_p * len(engine.outputs))()
        self._check(self._c.net_run(self._handle, given, wanted))
        places = [self._c.net_output_data(self._handle, number) for number in range(len(engine.outputs))]
        return [ctypes.string_at(place, size) for place, size in zip(places, self._sizes(engine), strict=True)]

    def run_on_device(self, feeds: Feeds, engine: Engine, driver: CudaDriver) -> tuple[list[bytes], float]:
        """The outputs of a run on arrays of the device, on a stream of the caller, and milliseconds of one of many."""
        self._set_shapes(feeds, engine)
        self.run(feeds, engine)  # where a run decides about sizes they are known now
        arrays = [np.ascontiguousarray(feeds[tensor.name]) for tensor in engine.inputs]
        results = [np.empty(size, np.uint8) for size in self._sizes(engine)]
        driver.activate()
        with _memory(driver, [one.nbytes for one in (*arrays, *results)]) as (stream, places):
            for array, place in zip(arrays, places, strict=False):
                driver.copy_to_device(place, array.ctypes.data, array.nbytes, stream)
            given = (ctypes.c_void_p * len(arrays))(*places[: len(arrays)])
            wanted = (ctypes.c_void_p * len(results))(*places[len(arrays) :])
            self._check(self._c.net_set_stream(self._handle, ctypes.c_void_p(stream)))
            for _ in range(3):
                self._check(self._c.net_run_device(self._handle, given, wanted))
            driver.synchronize(stream)
            start = time.perf_counter()
            for _ in range(_RUNS_OF_ALL):
                self._check(self._c.net_run_device(self._handle, given, wanted))
            driver.synchronize(stream)
            taken = (time.perf_counter() - start) * 1e3 / _RUNS_OF_ALL
            for result, place in zip(results, places[len(arrays) :], strict=True):
                driver.copy_to_host(result.ctypes.data, place, result.nbytes, stream)
            driver.synchronize(stream)
            self._check(self._c.net_set_stream(self._handle, None))
        return [result.tobytes() for result in results], taken


@contextmanager
def _memory(driver: CudaDriver, sizes: Sequence[int]) -> Generator[tuple[int, list[int]]]:
    """A stream, and memory of the device."""
    stream = driver.new_stream()
    places = [driver.allocate(size) for size in sizes]
    try:
        yield stream, places
    finally:
        for place in places:
            driver.free(place)
        driver.free_stream(stream)
