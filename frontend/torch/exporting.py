"""Modules as exported programs, in the operators that have handlers or those of PyTorch's core set."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch

from mlirt.errors import InvalidInputError, UnsupportedError
from mlirt.frontend.torch.handlers import supported_operators
from mlirt.frontend.torch.recurrent_shapes import open_lengths


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
            return torch.export.export(module, arguments, dict(keywords or {}), dynamic_shapes=dynamic_shapes)
        except (TypeError, AssertionError) as error:
            raise InvalidInputError(f"torch.export: {_text(error)}") from error
        except Exception as error:
            raise UnsupportedError(f"torch.export cannot trace the module: {_text(error)}") from error


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
    table = torch.export.default_decompositions()
    for operator in kept_operators():
        if operator in table:
            table.pop(operator)
    with open_lengths(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return program.run_decompositions(table)
        except Exception as error:
            raise UnsupportedError(f"torch.export cannot trace the module: {_text(error)}") from error


@cache
def kept_operators() -> list[Any]:
    """The operators that need not be decomposed, as they have handlers; other versions of PyTorch lack some of them."""
    found: list[Any] = []
    for name in supported_operators():
        _, base, overload = name.split(".")
        packet = getattr(torch.ops.aten, base, None)
        operator = getattr(packet, overload, None)
        found += [operator] if operator is not None else []
    return found


def _text(error: BaseException) -> str:
    return " ".join(str(error).split())[:600] or type(error).__name__
