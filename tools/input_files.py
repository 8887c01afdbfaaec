"""Reads what the tools are given: IR text, an ONNX model, or standard input; with the weights beside it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.context import RtContext
from mlirt.dialects.registry import register_dialects
from mlirt.dialects.source_parser import SourceMap, parse_source
from mlirt.errors import InvalidInputError, InvalidModelError

_SPLIT = re.compile(r"^// -----[ \t]*$", re.MULTILINE)


def new_context(allow_unregistered: bool = False) -> RtContext:
    """A context that knows all dialects, ours and xDSL's, and has loaded none."""
    ctx = RtContext(allow_unregistered=allow_unregistered)
    register_dialects(ctx)
    return ctx


@dataclass(frozen=True)
class InputFile:
    """A file on disk, or standard input where the path is `-`."""

    path: str

    @property
    def name(self) -> str:
        return "<stdin>" if self.path == "-" else self.path

    @property
    def is_onnx(self) -> bool:
        return self.path.endswith(".onnx")

    def read_text(self) -> str:
        """The text; raises `InvalidInputError` where it cannot be read."""
        if self.path == "-":
            return sys.stdin.read()
        try:
            return Path(self.path).read_text(encoding="utf-8")
        except OSError as error:
            raise InvalidInputError(f"cannot read the file: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise InvalidModelError(
                f"expected IR text or a name that ends in .onnx, but byte {error.start} is no text"
            ) from error

    def load_weights(self, ctx: RtContext, weights: str | None) -> None:
        """Read the weights file that was asked for, else the one beside the IR where there is one."""
        from mlirt.dialects.weights_file import read_weights, weights_beside

        beside = None if self.path == "-" else weights_beside(Path(self.path))
        file = beside if weights is None else Path(weights)
        if file is not None:
            read_weights(ctx, file)


def chunks(text: str, split: bool) -> Iterator[str]:
    """The parts of a text between `// -----` lines, each moved down to the lines where it stands in the file."""
    if not split:
        yield text
        return
    line = 0
    for chunk in _SPLIT.split(text):
        yield "\n" * line + chunk
        line += chunk.count("\n")


def load_network(ctx: RtContext, file: InputFile) -> ModuleOp:
    """The network of an ONNX file."""
    from mlirt.frontend.onnx.importer import import_model

    if not Path(file.path).is_file():
        what = "Is a directory" if Path(file.path).is_dir() else "No such file or directory"
        raise InvalidInputError(f"cannot read the file: {what}")
    return import_model(file.path, ctx)


def load_text(ctx: RtContext, text: str, file: InputFile) -> tuple[ModuleOp, SourceMap]:
    """The module of a text, with the places of its ops."""
    return parse_source(ctx, text, file.name)
