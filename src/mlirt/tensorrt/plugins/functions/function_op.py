"""What is known of an op that a function computes: its name, inputs and attributes, how to describe and to run it."""

from __future__ import annotations

import base64
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from mlirt.errors import InvalidInputError
from mlirt.tensorrt.plugins.functions.tensors import Tensor, TensorDesc

if TYPE_CHECKING:
    Describe: TypeAlias = Callable[[Sequence[TensorDesc], Mapping[str, Any]], Sequence[TensorDesc]]
    Compute: TypeAlias = Callable[[Sequence[Tensor], Sequence[Tensor], Mapping[str, Any], int, int], None]
    Tune: TypeAlias = Callable[[Sequence[TensorDesc], Sequence[TensorDesc], Mapping[str, Any]], int]

_LISTS = ("list", "tuple", "ndarray", "NDArray", "Sequence")


@dataclass(frozen=True)
class Attribute:
    """A parameter of a function that is no tensor."""

    name: str
    default: Any
    is_list: bool | None
    """Whether it is a list of numbers; None where neither its default nor its annotation tells."""

    @property
    def is_needed(self) -> bool:
        return self.default is inspect.Parameter.empty

    def taken(self, value: Any) -> Any:
        """A value as the function is to get it: one number, or several, as it says."""
        import numpy as np

        if not isinstance(value, list | tuple | np.ndarray):
            return [value] if self.is_list else value
        array: Any = np.asarray(cast("Any", value))
        if array.size == 1 and not self.is_list:
            return array.ravel()[0].item()
        return array.ravel().tolist()


@dataclass
class FunctionOp:
    """An op `domain::name`.

    `describe` gives the outputs of inputs that are like this; `compute` writes them, from inputs, outputs, attributes,
    the CUDA stream (0 on the host), and the tactic that `tune` chose for tensors that are like this.
    """

    domain: str
    name: str
    inputs: tuple[str, ...]
    takes_more: bool
    """Whether further inputs may follow (`*args`)."""
    attributes: Mapping[str, Attribute]
    targets: frozenset[str]
    """Where `compute` can run: "cpu", "cuda"."""
    describe: Describe
    compute: Compute
    tune: Tune | None = None
    scalar: Callable[..., Any] | None = None
    """The function of numbers that is applied to each element, where it is one."""
    types: Callable[[Sequence[str]], Any] | Sequence[Any] | Any | None = None
    refusal: str = ""
    """Why the scalar function could not be read, once somebody has tried."""

    @property
    def label(self) -> str:
        return f"{self.domain}::{self.name}" if self.domain else self.name

    def checked(self, count: int, given: Mapping[str, Any]) -> dict[str, Any]:
        """All attributes for a call with so many inputs; raises `InvalidInputError` where they do not fit."""
        least = len(self.inputs)
        if count < least or (count > least and not self.takes_more):
            more = " or more" if self.takes_more else ""
            raise InvalidInputError(f"{self.label} has {least}{more} inputs ({', '.join(self.inputs)}), got {count}")
        known = ", ".join(self.attributes) or "none"
        for name in given:
            if name not in self.attributes:
                raise InvalidInputError(f"{self.label} has no attribute {name!r}; its attributes are {known}")
        found: dict[str, Any] = {}
        for name, attribute in self.attributes.items():
            if name not in given and attribute.is_needed:
                raise InvalidInputError(f"{self.label} needs the attribute {name!r}, which has no default")
            found[name] = attribute.taken(given[name]) if name in given else attribute.default
        return found


def split_name(text: str) -> tuple[str, str]:
    """Domain and name of `domain::name`; raises `InvalidInputError` for other texts."""
    domain, colons, name = text.rpartition("::")
    if not name or "::" in domain or (colons and not domain):
        raise InvalidInputError(f"{text!r} is no name of an op; expected 'domain::Name', or 'Name' for no domain")
    return domain, name


def split_parameters(function: Callable[..., Any]) -> tuple[tuple[str, ...], bool, dict[str, Attribute]]:
    """The inputs of a function, whether there may be more, and its attributes: those with defaults or names alone."""
    inputs: list[str] = []
    attributes: dict[str, Attribute] = {}
    takes_more = False
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            takes_more = True
        elif parameter.kind is parameter.VAR_KEYWORD:
            raise InvalidInputError(f"**{name} of {function.__name__}: attributes have names; list them")
        elif parameter.kind is parameter.KEYWORD_ONLY or parameter.default is not parameter.empty:
            attributes[name] = attribute_of(parameter)
        else:
            inputs.append(name)
    return tuple(inputs), takes_more, attributes


def attribute_of(parameter: inspect.Parameter) -> Attribute:
    """A parameter as an attribute."""
    annotation: Any = parameter.annotation
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    if annotation is not parameter.empty:
        return Attribute(parameter.name, parameter.default, any(word in str(text) for word in _LISTS))
    if parameter.default is parameter.empty or parameter.default is None:
        return Attribute(parameter.name, parameter.default, None)
    return Attribute(parameter.name, parameter.default, isinstance(parameter.default, list | tuple))


def to_json(value: Any) -> Any:
    """An attribute as JSON has it; raises `InvalidInputError` for what a plan cannot hold."""
    import numpy as np

    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(cast("Any", value)).tolist()
    if isinstance(value, list | tuple):
        return [to_json(one) for one in cast("Sequence[Any]", value)]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InvalidInputError(f"an attribute is a number, a text, bytes or a list of those, not {type(value).__name__}")


def from_json(value: Any) -> Any:
    """What `to_json` was given, arrays and tuples as lists."""
    return base64.b64decode(cast("dict[str, str]", value)["bytes"]) if isinstance(value, dict) else value
