"""The tables of a plan for CUDA devices: those of every plan, and kernels with their code, grids, and tensor maps."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence

from mlirt.runtime.c_library.c_text import literal, record
from mlirt.runtime.c_library.launch_contracts import LaunchContracts
from mlirt.runtime.c_library.tables import Tables
from mlirt.runtime.cuda_architectures import is_ptx
from mlirt.runtime.data_types import numpy_dtype
from mlirt.runtime.manifest import BufferArgument, FloatArgument, Manifest, MapArgument
from mlirt.runtime.tensor_maps import driver_element, driver_swizzle

_ARCH = re.compile(r"(?:sm|compute)_(\d{2,3})([af]?)")
_MAX_RANK = 5


class CudaTables(Tables):
    """All tables of one plan."""

    def __init__(
        self, manifest: Manifest, weight_places: Mapping[str, int], name: str, sections: Mapping[str, int], weights: int
    ) -> None:
        """`sections`: the number of each section of code; `weights`: the bytes of all weights."""
        self._sections, self._weights = sections, weights
        self._maps: list[str] = []
        super().__init__(manifest, weight_places, name)

    def _add_formulas(self) -> None:
        super()._add_formulas()
        for launch in self._manifest.launches:
            for formula in launch.grid:
                self._formulas.add(formula)
            for argument in launch.args:
                if isinstance(argument, MapArgument):
                    for formula in (argument.offset, *argument.sizes, *argument.steps):
                        self._formulas.add(formula)

    def source(self) -> str:
        """The C source."""
        plan = super().source()
        self._fields = {"weight_bytes": str(self._weights)}
        self._parts = []
        self._add_code()
        self._add_grids()
        self._add_uses()
        self._array("tensor_map ", "maps", self._maps)
        fields = ",\n".join(f"  .{name} = {value}" for name, value in self._fields.items())
        own = f"const cuda_plan {self._name}_cuda_plan = {{\n{fields},\n}};\n"
        return "\n".join([plan.replace('"plan.h"', '"target.h"', 1), *self._parts, own])

    def _add_features(self) -> None:
        """None: devices are told apart by their compute capability."""

    def _add_kernels(self) -> None:
        """They stand in the table of this target."""

    def _argument(self, one: object, kind: str) -> str:
        if isinstance(one, MapArgument):
            self._maps.append(self._map(one))
            return record("MAP", one.buffer, self._number(one.offset), len(self._maps) - 1)
        if isinstance(one, FloatArgument) and kind == "f32":
            bits = struct.unpack("<I", struct.pack("<f", one.value))[0]
            return record("FIXED_NARROW", self._numbers.word(bits), 0, 0)
        return super()._argument(one, kind)

    def _map(self, one: MapArgument) -> str:
        fixed, window = one.fixed, [one.fixed.lower, one.fixed.upper, one.fixed.stride]
        described = driver_element(fixed), numpy_dtype(fixed.element).itemsize, driver_swizzle(fixed)
        numbered = ([self._number(formula) for formula in formulas] for formulas in (one.sizes, one.steps))
        lists = [_padded(values) for values in (*numbered, fixed.box, *window)]
        return record(len(one.sizes), *described, int(bool(fixed.stride)), *lists)

    def _add_code(self) -> None:
        kernels, rows, codes = self._manifest.kernels, list[str](), list[str]()
        for kernel in kernels:
            shape = record(*kernel.block), kernel.shared_bytes, int(kernel.dependent_launch), int(kernel.cooperative)
            names = literal(kernel.name[:80]), literal(kernel.symbol)
            own = list(_codes(kernel.objects, self._sections))
            rows.append(record(*names, *shape, len(codes), len(own)))
            codes += own
        first = len(codes)
        codes += _codes(self._manifest.conditions, self._sections)
        symbols = [f"{self._name}_code_{number}" for number in range(len(self._sections))]
        self._parts.append("\n".join([*(f"extern const unsigned char {one}[];" for one in symbols), ""]))
        self._array("unsigned char *const ", "sections", symbols, "section_count")
        self._array("kernel ", "kernels", rows, "kernel_count")
        self._array("arch_code ", "codes", codes)
        self._fields |= {"first_condition": str(first), "condition_count": str(len(codes) - first)}

    def _add_grids(self) -> None:
        rows = [record(record(*map(self._number, launch.grid))) for launch in self._manifest.launches]
        self._array("grid_numbers ", "grids", rows)

    def _add_uses(self) -> None:
        rows, parts = list[str](), list[int]()
        for launch in self._manifest.launches:
            written = self._manifest.kernels[launch.kernel].written
            for place, one in enumerate(launch.args):
                part = one.part if isinstance(one, BufferArgument) else ()
                rows.append(record(int(place in written), len(parts), len(part)))
                parts += part
        self._array("argument_use ", "uses", rows)
        self._array("int64_t ", "parts", [f"INT64_C({one})" for one in parts])

    def _contracts(self) -> LaunchContracts:
        return LaunchContracts(self._manifest, self._formulas, has_grids=True)


def _codes(objects: Mapping[str, str], sections: Mapping[str, int]) -> Iterator[str]:
    for arch, section in sorted(objects.items()):
        match = _ARCH.fullmatch(arch)
        if match is not None:
            suffix = ("", "f", "a").index(match[2])
            yield record(literal(arch), int(match[1]), suffix, int(is_ptx(arch)), sections[section])


def _padded(values: Sequence[int]) -> str:
    return record(*values, *[0] * (_MAX_RANK - len(values)))
