"""Weights outside the IR: the text holds a key and a digest, the bytes live in a store."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Collection, Generator, Iterable, Iterator, KeysView, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from mlirt.aligned_memory import AlignedMemory, is_aligned
from mlirt.dialects.tensor_types import dtype_name
from mlirt.errors import InvalidModelError
from mlirt.half_numbers import are_halves
from mlirt.mapped_files import is_mapped, release_pages

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

# What of a mapped model may stay in memory at a time.
_BYTES_BEFORE_RELEASE = 1 << 25

# Smaller arrays stay, so that small networks can be built again from where they were.
_WORTH_FREEING = 1 << 20

# Arrays for which it matters that they could be stored in half the bytes.
_MIN_LARGE_BYTES = 1 << 16


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


@dataclass
class _Widened:
    """The numbers of a narrower array in another type, made again whenever they are needed and nobody has them."""

    source: Array
    dtype: np.dtype[Any]
    latest: weakref.ref[Array]

    def array(self) -> Array:
        found = self.latest()
        if found is None:
            found = self.source.astype(self.dtype)
            self.latest = weakref.ref(found)
        return found


class WeightStore:
    """Arrays by key; keys are unique, arrays are never changed in place."""

    def __init__(self) -> None:
        self._arrays: dict[str, Array | _Widened] = {}
        self._by_digest: dict[str, WeightsAttr] = {}
        self._counts: dict[str, int] = {}  # the next number to try for each hint
        self._halves: dict[str, bool] = {}  # by digest
        self._freed: set[str] = set()  # the keys of arrays that are gone, which are nobody else's
        self._packed = AlignedMemory()
        self._read = 0  # bytes since pages were released
        self._kept: frozenset[str] | None = None  # what stays; None: all
        self._new = 0  # bytes that were put since arrays were let go of

    def put(self, array: Array, hint: str = "weights", source: Array | None = None) -> WeightsAttr:
        """Store an array under a key made from `hint`; equal arrays share one entry.

        One with the numbers of a narrower array, its `source`, is not kept: it can be made again.
        """
        digest = digest_of(array)
        self._has_read(array.nbytes)
        attr = self._by_digest.get(digest)
        if attr is None:
            count = self._counts.get(hint, 0)
            while (key := f"{hint}.{count}" if count else hint) in self._arrays or key in self._freed:
                count += 1
            self._counts[hint] = count + 1
            attr = self._by_digest[digest] = WeightsAttr(StringAttr(key), StringAttr(digest))
        elif attr.key.data in self._arrays:
            return attr
        # One that was let go of has the key again that it had.
        self._new += array.nbytes
        self._arrays[attr.key.data] = array if source is None else _Widened(source, array.dtype, weakref.ref(array))
        return attr

    def put_packed(self, array: Array, hint: str) -> WeightsAttr:
        """The same for an array that kernels will read: it is copied, once, to where they can, in C order.

        So a view of another array, with any strides, is the cheapest to give.
        """
        copy = self._packed.copy_of(array)
        attr = self.put(copy, hint)
        found = self._arrays[attr.key.data]
        if isinstance(found, _Widened) or not _suits_kernels(found):
            self._arrays[attr.key.data] = copy
        elif found is not copy:
            self._packed.take_back(copy)
        return attr

    @contextmanager
    def freeing(self, *, everything: bool = False) -> Generator[None]:
        """Within, large arrays that are put may be let go of again; those that are here already stay, unless they are
        meant, too, by `everything`.
        """
        kept = frozenset[str]() if everything else frozenset(self._arrays)
        before, self._kept, self._new = self._kept, kept, 0
        try:
            yield
        finally:
            self._kept = before

    @property
    def could_free(self) -> bool:
        """Whether so much has been put that it pays to look for arrays without a reader."""
        return self._kept is not None and self._new >= _BYTES_BEFORE_RELEASE

    def keep_only(self, keys: Collection[str]) -> None:
        """Free all other arrays that may be freed."""
        self._new = 0
        self.let_go(self._arrays.keys() - keys)

    def let_go(self, keys: Iterable[str]) -> None:
        """Free some arrays, those that may be; putting an equal one brings it back."""
        if self._kept is not None:
            gone = [key for key in keys if key not in self._kept and self._is_large(key)]
            self._freed.update(gone)
            for key in gone:
                del self._arrays[key]

    def _is_large(self, key: str) -> bool:
        array = self._arrays.get(key)
        return array is not None and not isinstance(array, _Widened) and array.nbytes >= _WORTH_FREEING

    def get(self, attr: WeightsAttr) -> Array:
        """The array of an attribute; raises `InvalidModelError` where the store does not hold it."""
        array = self._arrays.get(attr.key.data)
        if array is None:
            raise InvalidModelError(f"weights {attr.key.data!r} are not loaded: give the weights file beside the IR")
        return array.array() if isinstance(array, _Widened) else array

    def are_halves(self, attr: WeightsAttr) -> bool:
        """Whether an array of float32, unless it is a small one, has the numbers of halves alone."""
        digest = attr.digest.data
        if digest not in self._halves:
            source = self._source_in_halves(attr)
            array = self.get(attr) if source is None else source
            is_large = array.size * 4 >= _MIN_LARGE_BYTES and array.dtype.name in ("float16", "float32")
            self._halves[digest] = is_large and (source is not None or _is_widened(array))
        return self._halves[digest]

    def halves(self, attr: WeightsAttr) -> Array:
        """The numbers of such an array in half precision."""
        source = self._source_in_halves(attr)
        return self.get(attr).astype("float16") if source is None else source

    def _source_in_halves(self, attr: WeightsAttr) -> Array | None:
        entry = self._arrays.get(attr.key.data)
        return entry.source if isinstance(entry, _Widened) and entry.source.dtype.name == "float16" else None

    def add(self, key: str, array: Array) -> None:
        """Store an array under an exact key, as a weights file has it; raises `InvalidModelError` on a second one."""
        if key in self._arrays:
            raise InvalidModelError(f"weights {key!r} are given twice")
        self._arrays[key] = array
        digest = digest_of(array)
        self._by_digest[digest] = WeightsAttr(StringAttr(key), StringAttr(digest))

    def digests(self) -> Iterator[tuple[str, str]]:
        """The digest of each array by its key."""
        return ((attr.key.data, digest) for digest, attr in self._by_digest.items() if attr.key.data in self._arrays)

    def share(self, other: WeightStore, keys: Collection[str] | None = None) -> None:
        """Have the arrays of another store under the same keys, all of them or some; this one is empty."""
        assert not self._arrays
        self._arrays = {key: array for key, array in other._arrays.items() if keys is None or key in keys}
        self._by_digest = {digest: attr for digest, attr in other._by_digest.items() if attr.key.data in self._arrays}

    def keys(self) -> KeysView[str]:
        return self._arrays.keys()

    def items(self, keys: Collection[str] | None = None) -> Iterator[tuple[str, Array]]:
        """All arrays with their keys, or those of some keys."""
        for key, array in self._arrays.items():
            if keys is None or key in keys:
                yield key, array.array() if isinstance(array, _Widened) else array

    def for_kernels(self, keys: Collection[str]) -> dict[str, Array]:
        """Arrays where kernels can read them, none of them in a file of the model, which may be written to later.

        What is copied for that is kept here in place of the original.
        """
        found: dict[str, Array] = {}
        for key, array in self.items(keys):
            found[key] = array if _suits_kernels(array) else self._packed.copy_of(array)
            self._arrays[key] = found[key]  # at once, so that no more than one is there twice
            self._has_read(array.nbytes)
        return found

    def _has_read(self, size: int) -> None:
        self._read += size
        if self._read >= _BYTES_BEFORE_RELEASE:
            self._read = 0
            release_pages()


def _suits_kernels(array: Array) -> bool:
    return is_aligned(array) and not is_mapped(array)


def _is_widened(array: Array) -> bool:
    return dtype_name(array.dtype) == "float32" and are_halves(array)


def digest_of(array: Array) -> str:
    """A 16-digit name for type, shape and bytes of an array."""
    import numpy as np

    contiguous = np.ascontiguousarray(array)
    state = hashlib.blake2b(f"{dtype_name(array.dtype)}{array.shape}".encode(), digest_size=8)
    state.update(contiguous.reshape(-1).view(np.uint8).data)
    return state.hexdigest()
