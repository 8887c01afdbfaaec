"""Weights outside the IR: the text holds a key and a digest, the bytes live in a store."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from mlirt.errors import InvalidModelError

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@irdl_attr_definition
class WeightsAttr(ParametrizedAttribute):
    """`#trt.weights<"conv1.weight", "9f86d081">`: a constant whose bytes are in the context's store."""

    name = "trt.weights"

    key: StringAttr = param_def()
    digest: StringAttr = param_def()

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.key)
            printer.print_string(", ")
            printer.print_attribute(self.digest)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            key = parser.parse_str_literal()
            parser.parse_punctuation(",")
            return [StringAttr(key), StringAttr(parser.parse_str_literal())]


class WeightStore:
    """Arrays by key; keys are unique, arrays are never changed in place."""

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}
        self._by_digest: dict[str, WeightsAttr] = {}
        self._counts: dict[str, int] = {}  # the next number to try for each hint

    def put(self, array: Array, hint: str = "weights") -> WeightsAttr:
        """Store an array under a key made from `hint`; equal arrays share one entry."""
        digest = digest_of(array)
        if digest in self._by_digest:
            return self._by_digest[digest]
        count = self._counts.get(hint, 0)
        while (key := f"{hint}.{count}" if count else hint) in self._arrays:
            count += 1
        self._counts[hint] = count + 1
        attr = WeightsAttr(StringAttr(key), StringAttr(digest))
        self._arrays[key] = array
        self._by_digest[digest] = attr
        return attr

    def get(self, attr: WeightsAttr) -> Array:
        """The array of an attribute; raises `InvalidModelError` where the store does not hold it."""
        array = self._arrays.get(attr.key.data)
        if array is None:
            raise InvalidModelError(f"weights {attr.key.data!r} are not loaded: give the weights file beside the IR")
        return array

    def add(self, key: str, array: Array) -> None:
        """Store an array under an exact key, as a weights file has it; raises `InvalidModelError` on a second one."""
        if key in self._arrays:
            raise InvalidModelError(f"weights {key!r} are given twice")
        self._arrays[key] = array
        digest = digest_of(array)
        self._by_digest[digest] = WeightsAttr(StringAttr(key), StringAttr(digest))

    def digests(self) -> Iterator[tuple[str, str]]:
        """The digest of each array by its key."""
        return ((attr.key.data, digest) for digest, attr in self._by_digest.items())

    def items(self) -> Iterator[tuple[str, Array]]:
        return iter(self._arrays.items())


def digest_of(array: Array) -> str:
    """A 16-digit name for type, shape and bytes of an array."""
    import numpy as np

    contiguous = np.ascontiguousarray(array)
    state = hashlib.blake2b(f"{array.dtype.name}{array.shape}".encode(), digest_size=8)
    state.update(contiguous.reshape(-1).view(np.uint8).data)
    return state.hexdigest()
