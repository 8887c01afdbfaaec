"""The contract of an op on tensors: types from types, meaning in NumPy, and a verifier derived from both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, OptOperandDef, VarOperandDef, VarResultDef
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.length_requirements import LengthRequirement
from mlirt.dialects.tensor_types import Tensor, compatible

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


class TensorOp(IRDLOperation, ABC):
    """An op whose result types follow from its operands and properties, and whose meaning NumPy states."""

    def check(self) -> None:
        """Raise `VerifyException` where a numbered constraint of the op's docstring does not hold."""

    def length_requirements(self) -> Iterator[LengthRequirement]:
        """The numbered constraints on lengths; asked only where `check` passed.

        The verifier decides about them where the lengths are numbers, the interpreter where it meets them, and a plan
        checks at each run those that nothing proves (`require-lengths`).
        """
        return iter(())

    def check_all(self) -> None:
        """Raise `VerifyException` where a constraint does not hold, be it one on lengths."""
        self.check()
        check_lengths(self.length_requirements())

    @abstractmethod
    def infer(self) -> Sequence[Tensor]:
        """The result types, symbolic dimensions included; called only where `check` passed."""

    @abstractmethod
    def reference(self, *arrays: Array) -> Sequence[Array]:
        """The results for these operands; defines what every target must compute."""

    def verify_(self) -> None:
        self.check_all()
        for result, expected in zip(self.results, self.infer(), strict=True):
            if not compatible(result.type, expected):
                raise VerifyException(f"{self.name}: the result type should be {expected}, but it is {result.type}")

    @classmethod
    def grouped(cls, types: Sequence[Attribute]) -> list[Attribute | Sequence[Attribute]]:
        """Result types as `build` takes them: an op with a variable number of results has them in a list of its own."""
        is_variadic = any(isinstance(one, VarResultDef) for _, one in cls.get_irdl_definition().results)
        return [list(types)] if is_variadic else list(types)

    @classmethod
    def build_inferred(
        cls,
        operands: Sequence[SSAValue | Sequence[SSAValue] | None],
        properties: Mapping[str, object] | None = None,
        location: LocationAttr | None = None,
        results: int = 1,
    ) -> Self:
        """Make the op with the result types that `infer` gives; raises `VerifyException` where `check_all` does.

        Properties are attributes or plain values: `{"kind": "clip", "alpha": 0.0, "beta": 6.0}`. Operands that may be
        absent can be left out at the end.
        """
        from xdsl.dialects.builtin import NoneType

        from mlirt.dialects.property_values import properties_of

        given = properties_of(cls, properties or {})
        operands = cls._all_operands(operands)
        op = cls.build(operands=operands, properties=given, result_types=cls.grouped([NoneType()] * results))
        op.check_all()
        typed = cls.build(operands=operands, properties=given, result_types=cls.grouped(op.infer()))
        op.erase(safe_erase=False)
        if location is not None:
            typed.location = location
        return typed

    @classmethod
    def _all_operands(
        cls, given: Sequence[SSAValue | Sequence[SSAValue] | None]
    ) -> Sequence[SSAValue | Sequence[SSAValue] | None]:
        """The operands with None for those at the end that are left out; raises `VerifyException` for other numbers."""
        defined = cls.get_irdl_definition().operands
        if len(given) == len(defined):
            return given
        left_out = defined[len(given) :]
        if len(given) > len(defined) or not all(isinstance(one, VarOperandDef) for _, one in left_out):
            names = ", ".join(name for name, _ in defined) or "none"
            raise VerifyException(f"{cls.name} has been given {len(given)} operands; it has {names}")
        return [*given, *((None if isinstance(one, OptOperandDef) else ()) for _, one in left_out)]


def check_lengths(requirements: Iterable[LengthRequirement]) -> None:
    """Raise `VerifyException` where the lengths are numbers that do not fulfil a requirement."""
    for one in requirements:
        require(one.holds() is not False, f"{one.rule}: {one.explained()}")


def require(condition: bool, message: str) -> None:
    """Raise `VerifyException(message)` unless the condition holds."""
    if not condition:
        raise VerifyException(message)
