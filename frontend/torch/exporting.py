"""Modules as exported programs, in the operators that have handlers or those of PyTorch's core set."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch._export.utils as export_utils

from mlirt.errors import InvalidInputError, UnsupportedError
from mlirt.frontend.torch.fused_layers import decompositions
from mlirt.frontend.torch.handlers import supported_operators
from mlirt.frontend.torch.open_lengths import open_lengths

_LOG = logging.getLogger("mlirt")
_UNPROVED = "Constraints violated"
"""How PyTorch says that a condition may not hold for each length in a range, or holds for one length alone."""
_LOOKS_UP = "_materialize_cpp_cia_ops"
"""What looks up the operators that PyTorch composes of others in C++."""


def exported(
    module: Any,
    arguments: Sequence[Any],
    keywords: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
) -> Any:
    """`torch.export.export` of a module for inference.

    Raises `UnsupportedError` where PyTorch cannot trace the module; its message says why.
    """
    arguments = (arguments,) if isinstance(arguments, torch.Tensor) else tuple(arguments)
    with _in_inference(module), torch.no_grad(), open_lengths(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _exported(module, arguments, dict(keywords or {}), dynamic_shapes)
        except (TypeError, AssertionError) as error:
            raise InvalidInputError(f"torch.export: {_text(error)}") from error
        except Exception as error:
            raise UnsupportedError(f"torch.export cannot trace the module: {_text(error)}") from error


def _exported(module: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], dynamic_shapes: Any) -> Any:
    """PyTorch's program. What it cannot prove of all lengths in a range, such as 2 * (n // 2) <= n, each run checks.

    So is what a range does not allow: a run with such a length is refused.
    """
    try:
        return torch.export.export(module, arguments, keywords, dynamic_shapes=dynamic_shapes)
    except torch._dynamo.exc.UserError as error:
        hints = _hints(dynamic_shapes)
        if _UNPROVED not in str(error) or hints is None:
            raise
        program = torch.export.export(module, arguments, keywords, dynamic_shapes=hints)
        _LOG.warning("mlirt: lengths are checked in each run, as PyTorch does not allow all of them: %s", _text(error))
        return program


def _hints(shapes: Any) -> Any:
    """Dynamic shapes that say which lengths change and within what; None where one is a formula of another."""
    if isinstance(shapes, torch.export.Dim):
        is_plain = type(shapes) is torch.export.Dim
        return torch.export.Dim.DYNAMIC(min=shapes.min, max=shapes.max) if is_plain else None
    if isinstance(shapes, Mapping):
        found = {key: _hints(one) for key, one in shapes.items()}
        return None if any(found[key] is None and shapes[key] is not None for key in found) else found
    if isinstance(shapes, list | tuple):
        listed = [_hints(one) for one in shapes]
        is_lost = any(new is None and one is not None for new, one in zip(listed, shapes, strict=True))
        return None if is_lost else type(shapes)(listed)
    return shapes


@contextmanager
def _in_inference(module: Any):
    """The module and those in it as `eval()` sets them, meanwhile; the caller is told where that changes anything."""
    training = [part for part in module.modules() if part.training]
    if any(_behaves_otherwise(part) for part in training):
        warnings.warn("the module is in training mode; it is compiled as eval() has it", stacklevel=4)
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True


def _behaves_otherwise(module: Any) -> bool:
    rate = getattr(module, "p", getattr(module, "dropout", 0))
    drops = "dropout" in type(module).__name__.lower() and isinstance(rate, float) and rate > 0
    return drops or getattr(module, "track_running_stats", False)


def decomposed(program: Any) -> Any:
    """The program in operators that have handlers, and those of the core set where an operator has none.

    Raises `UnsupportedError` where PyTorch cannot trace what an operator is decomposed into.
    """
    with open_lengths(), _composites_looked_up_once(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return program.run_decompositions(_decomposition_table())
        except Exception as error:
            raise UnsupportedError(f"torch.export cannot trace the module: {_text(error)}") from error


def _decomposition_table() -> dict[Any, Any]:
    table = dict(torch.export.default_decompositions())
    for operator in kept_operators():
        table.pop(operator, None)
    return table | decompositions()


_look_up_composites: Callable[[], None] | None = getattr(export_utils, _LOOKS_UP, None)


@contextmanager
def _composites_looked_up_once() -> Generator[None]:
    """PyTorch looks all composite operators up for each of its libraries, twice: half of a small module's compilation.

    Meanwhile it finds in this thread those that were registered before. Versions that do otherwise are left alone.
    """
    known = _look_up_composites
    if known is None:
        yield
        return
    own = threading.get_ident()

    def look_up() -> None:
        if threading.get_ident() != own:
            known()

    known()
    setattr(export_utils, _LOOKS_UP, look_up)
    try:
        yield
    finally:
        setattr(export_utils, _LOOKS_UP, known)


def kept_operators() -> list[Any]:
    """The operators that need not be decomposed, as they have handlers.

    Other versions of PyTorch lack some of them, and those of other libraries are there once these have been imported.
    """
    found: list[Any] = []
    for name in supported_operators():
        space, base, overload = name.split(".")
        operator = getattr(getattr(getattr(torch.ops, space), base, None), overload, None)
        found += [operator] if operator is not None else []
    return found


def _text(error: BaseException) -> str:
    return " ".join(str(error).split())[:600] or type(error).__name__
