"""Kernel functions: Python functions that are inlined, statement by statement, into the kernel that is being built."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar, cast

from mlirt.kernels.lib.language.context import builder
from mlirt.kernels.lib.language.operators import WORDS
from mlirt.kernels.lib.language.reader import Reader
from mlirt.kernels.lib.language.syntax import Code, code_at

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


class KernelFunction:
    """A function that is read where it is called; as a method of a class it gets its object first."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.__doc__, self.__name__ = function, function.__doc__, function.__name__
        self._signature = inspect.signature(function)
        positional = all(one.kind is one.POSITIONAL_OR_KEYWORD for one in self._signature.parameters.values())
        self._names = tuple(self._signature.parameters) if positional else None

    def code(self) -> Code:
        """Its checked syntax tree; raises `KernelLanguageError` for what cannot be read."""
        code = self.function.__code__
        return code_at(code.co_filename, code.co_firstlineno, self.__name__)

    def __get__(self, instance: object, owner: type) -> Callable[..., Any]:
        return self if instance is None else partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return Reader(self.code(), self._scope(), self._arguments(args, kwargs), builder()).run()

    def _arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        """What its parameters stand for; most calls give all of them in order."""
        if self._names is not None and len(args) == len(self._names) and not kwargs:
            return dict(zip(self._names, args, strict=True))
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.arguments

    def _scope(self) -> Mapping[str, Any]:
        free, cells = self.function.__code__.co_freevars, self.function.__closure__ or ()
        outer = {name: cell.cell_contents for name, cell in zip(free, cells, strict=True)}
        return {**WORDS, **self.function.__globals__, **outer}


def kernel(function: FunctionT) -> FunctionT:
    """Decorator: let a function be read into the kernel that is being built, in place of being run."""
    return cast("FunctionT", KernelFunction(function))
