"""The networks that a record is made of: models in files, and Python files that make models."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp

from mlirt.builder.ir_input import read_ir
from mlirt.dialects.context import RtContext
from mlirt.errors import InvalidInputError
from mlirt.tools.input_files import InputFile, load_network, new_context

_TABLE = "NETWORKS"
_ENDS = (".onnx", ".mlir", ".py")


@dataclass(frozen=True)
class Started:
    """A network where its compilation begins: at the phase `first`, or at the first one."""

    module: ModuleOp
    ctx: RtContext
    first: str | None


@dataclass(frozen=True)
class CorpusNetwork:
    """A network by its name; `start` reads or makes it anew each time."""

    name: str
    start: Callable[[], Started]


def networks_of(models: Sequence[str], folder: Path) -> list[CorpusNetwork]:
    """The networks of models, whose paths are relative to a folder; names of files without their ends are their names.

    A Python file has a table `NETWORKS`: functions without arguments by name, which give ONNX models.
    Raises `InvalidInputError` for what is none of these, and for a name that two networks have.
    """
    found = [network for model in models for network in _networks_of(folder / model)]
    names = [network.name for network in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidInputError(f"two networks are called {twice[0]}: give one of the files another name")
    return found


def _networks_of(path: Path) -> Iterator[CorpusNetwork]:
    if path.suffix not in _ENDS:
        raise InvalidInputError(f"{path}: expected a name that ends in {', '.join(_ENDS)}, or a record")
    if not path.is_file():
        raise InvalidInputError(f"{path}: there is no such file")
    if path.suffix == ".py":
        for name, make in _table(path).items():
            yield CorpusNetwork(name, lambda make=make: _made(make))
    else:
        yield CorpusNetwork(path.stem, lambda: _read(path))


def _read(path: Path) -> Started:
    if path.suffix == ".mlir":
        ctx = RtContext()
        module, first, _ = read_ir(path, ctx)
        return Started(module, ctx, first)
    ctx = new_context()
    return Started(load_network(ctx, InputFile(str(path))), ctx, None)


def _made(make: Callable[[], Any]) -> Started:
    from mlirt.frontend.onnx.importer import import_model

    ctx = new_context()
    return Started(import_model(make(), ctx), ctx, None)


def _table(path: Path) -> Mapping[str, Callable[[], Any]]:
    with _beside(path):
        try:
            table: object = runpy.run_path(str(path)).get(_TABLE)
        except (Exception, SystemExit) as error:
            raise InvalidInputError(f"{path}: {type(error).__name__}: {' '.join(str(error).split())}") from error
    if not isinstance(table, Mapping) or not table:
        raise InvalidInputError(f"{path}: expected a table {_TABLE} of functions that give ONNX models, by name")
    return cast("Mapping[str, Callable[[], Any]]", table)


@contextmanager
def _beside(path: Path) -> Generator[None]:
    """Modules beside a file can be imported, as Python does for the file that it is called with."""
    folder = os.fspath(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
