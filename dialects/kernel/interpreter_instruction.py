"""Executes the meanings of instructions: what lanes have becomes arrays, what a meaning gives becomes their values.

The meaning of a pure instruction sees all lanes, in arrays of one row for each or one row for all. That of any other
one sees the lanes that execute it, one row for each; indices are arrays, memory is read and written through `View`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.kernel.instruction import Instruction, spec_of, view_of
from mlirt.dialects.kernel.instruction_fields import PURE
from mlirt.dialects.kernel.interpreter_lanes import Lanes, is_array
from mlirt.dialects.kernel.interpreter_memory import Access, Buffer
from mlirt.dialects.kernel.interpreter_simt import together, whole_warpgroups, whole_warps
from mlirt.dialects.kernel.simt import WARPGROUP

if TYPE_CHECKING:
    import numpy as np

    from mlirt.dialects.kernel.interpreter import Machine

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Site:
    """Where an instruction is executed: by which lanes (their numbers are `active`) of which machine."""

    machine: Machine
    lanes: Lanes
    op: Instruction
    active: Array

    @property
    def where(self) -> str:
        """How messages name the place."""
        return self.machine.where(self.op)

    @property
    def block(self) -> Array:
        """The block of each active lane."""
        return self.lanes.block[self.active]

    @property
    def thread(self) -> Array:
        return self.lanes.thread[self.active]

    @property
    def blocks(self) -> Array:
        """The blocks of a launch that execute the instruction, all of their threads."""
        return together(self.machine, self.lanes, self.op)

    @property
    def warpgroups(self) -> list[int]:
        """The first row of each warpgroup."""
        return whole_warpgroups(self.machine, self.lanes, self.op)

    def warpgroup(self, row: int) -> tuple[int, int]:
        """The block and the number of the warpgroup that a row belongs to."""
        return int(self.block[row]), int(self.thread[row]) // WARPGROUP


@dataclass(frozen=True)
class View:
    """A buffer as the active lanes see it: an index has one row for each of them."""

    buffer: Buffer
    site: Site

    def read(self, at: Array, where: Array | bool = True) -> Array:
        """The elements at these indices; zeros, and no access, where a condition does not hold."""
        import numpy as np

        wanted = np.nonzero(np.broadcast_to(where, at.shape))
        found = np.zeros(at.shape, self.buffer.data.dtype)
        found[wanted] = self.buffer.read(self.access(at, wanted))
        return found

    def write(self, at: Array, values: Array, where: Array | bool = True) -> None:
        import numpy as np

        wanted = np.nonzero(np.broadcast_to(where, at.shape))
        self.buffer.write(self.access(at, wanted), np.broadcast_to(values, at.shape)[wanted])

    def access(self, at: Array, wanted: tuple[Array, ...] | None = None) -> Access:
        """The access to these indices, or to the wanted ones of them."""
        import numpy as np

        chosen = np.nonzero(np.ones(at.shape, bool)) if wanted is None else wanted
        return self.site.lanes.access(at[chosen], self.site.active[chosen[0]], self.site.where)


def execute(machine: Machine, lanes: Lanes, op: Instruction) -> None:
    """Let the active lanes execute an instruction."""
    import numpy as np

    spec, x = spec_of(op), view_of(op)
    assert spec.meaning is not None, f"{op.name} has no meaning"
    site = Site(machine, lanes, op, np.flatnonzero(lanes.active))
    check = {"warp": whole_warps, "warpgroup": whole_warpgroups, "block": together}.get(spec.scope)
    if check is not None:
        check(machine, lanes, op)
    is_pure = spec.effects == PURE
    for name in spec.operands:
        value = getattr(op, name)
        one = value if spec.fields[name].variadic else [value]
        arrays = [None if each is None else _operand(site, each, is_pure) for each in one]
        setattr(x, name, arrays if spec.fields[name].variadic else arrays[0])
    made = spec.meaning(x, site)
    values = cast("tuple[Any, ...]", made) if isinstance(made, tuple) else (made,)
    for name, value in zip(spec.results, values, strict=bool(spec.results)):
        lanes[getattr(op, name)] = _spread(site, value) if not is_pure and is_array(value) else _kept(lanes, value)


def _operand(site: Site, value: SSAValue, is_pure: bool) -> Any:
    import numpy as np

    found = site.lanes.get(value)
    if isinstance(found, Buffer):
        return View(found, site)
    if not is_array(found):
        return found
    type_ = value.type
    if not isinstance(type_, VectorType):
        rows = np.atleast_1d(found)
    else:
        shape = cast("VectorType[Attribute]", type_).get_shape()
        rows = found.reshape(-1, *shape)
    if is_pure:
        return rows
    spread = np.broadcast_to(rows, (site.lanes.count, *rows.shape[1:]))
    return spread if len(site.active) == site.lanes.count else spread[site.active]


def _spread(site: Site, value: Array) -> Array:
    """The rows of active lanes among those of all."""
    import numpy as np

    rows = value if value.ndim < 3 else value.reshape(len(value), -1)
    if len(site.active) == site.lanes.count:
        return rows
    spread = np.zeros((site.lanes.count, *rows.shape[1:]), rows.dtype)
    spread[site.active] = rows
    return spread


def _kept(lanes: Lanes, value: Any) -> Any:
    """A value of all lanes as they keep it: a number that all have is one number, a tile one row."""
    if not is_array(value):
        return value
    if value.ndim > 2:
        return value.reshape(len(value), -1)
    return value[0] if value.ndim == 1 and len(value) == 1 != lanes.count else value
