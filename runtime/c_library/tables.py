"""The tables of a plan as C source, with the structures of `sources/plan.h`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mlirt.runtime.c_library.c_text import array, literal, numbers, optional_literal, record, whole
from mlirt.runtime.c_library.features import ARM_FEATURES, FEATURES
from mlirt.runtime.c_library.launch_contracts import LaunchContracts
from mlirt.runtime.c_library.number_code import NumberCode
from mlirt.runtime.c_library.steps import FlatProgram
from mlirt.runtime.contract_table import Terms
from mlirt.runtime.data_types import numpy_dtype
from mlirt.runtime.expressions import Expression, to_text
from mlirt.runtime.launch_words import bits_of
from mlirt.runtime.manifest import BufferArgument, FloatArgument, IntArgument, Manifest, MapArgument, Tensor
from mlirt.runtime.plan_formulas import PlanFormulas
from mlirt.runtime.program import certain
from mlirt.systems import architecture_of, system_of

_LINE = 8  # words of a line of the cache, on which parameters begin
_BORDER_HEAD, _BORDER_WORDS = 3, 7
_MATRIX_UNIT = "amx-int8"


class Tables:
    """All tables of one plan."""

    def __init__(
        self, manifest: Manifest, weight_places: Mapping[str, int], name: str = "net", *, has_own_symbols: bool = True
    ) -> None:
        """`weight_places`: where the bytes of each weight begin, by its key; `name`: the library's. Kernels have the
        names that the plan's objects give them, or are numbered.
        """
        self._manifest, self._weight_places, self._name = manifest, weight_places, name
        self._has_own_symbols = has_own_symbols
        self._plan = PlanFormulas(manifest)
        self._formulas = self._plan.table
        self._program = FlatProgram(manifest, self._formulas)
        self._add_formulas()
        contracts = self._contracts()
        self._terms = contracts.of_launches
        self._numbers = NumberCode(self._formulas, contracts.table)
        self._fields: dict[str, str] = {}
        self._parts: list[str] = []

    def _add_formulas(self) -> None:
        """All that tables refer to, before numbers are given."""
        manifest, add = self._manifest, self._formulas.add
        for one in self._program.requirements:
            for formula in (one.left, one.right, one.where):
                add(formula)
        for buffer in manifest.buffers:
            for formula in (buffer.size, buffer.view_offset, *buffer.border):
                add(formula)
        for launch in manifest.launches:
            for argument in launch.args:
                if isinstance(argument, IntArgument):
                    add(argument.value)
                elif isinstance(argument, BufferArgument):
                    add(argument.offset)
                    add(0 if argument.extent is None else argument.extent)

    def _contracts(self) -> LaunchContracts:
        return LaunchContracts(self._manifest, self._formulas)

    def source(self) -> str:
        """The C source."""
        self._add_symbols()
        for name, tensors in (("input", self._manifest.inputs), ("output", self._manifest.outputs)):
            self._add_tensors(name, tensors)
        self._add_states()
        self._add_ranges()
        self._add_requirements()
        self._add_buffers()
        self._add_launches()
        self._add_borders()
        self._add_steps()
        self._add_features()
        self._add_kernels()
        self._add_numbers()
        fields = ",\n".join(f"  .{name} = {value}" for name, value in self._fields.items())
        return "\n".join(['#include "plan.h"\n', *self._parts, f"const plan {self._name}_plan = {{\n{fields},\n}};\n"])

    def _array(self, kind: str, name: str, items: Sequence[str], count: str = "") -> None:
        """An array that the plan has as the field `name`, with the field `count` for its length."""
        self._parts.append(array(kind, name, items))
        self._fields[name] = name
        if count:
            self._fields[count] = str(len(items))

    def _int_array(self, name: str, values: Sequence[int]) -> None:
        self._parts.append(numbers(name, values))
        self._fields[name] = name

    def _number(self, formula: Expression) -> int:
        number = self._formulas.number_of(formula)
        assert number is not None
        return number

    def _add_numbers(self) -> None:
        code = self._numbers
        self._array("int64_t ", "initial_numbers", [whole(value) for value in code.initial], "number_count")
        self._array("instruction ", "code", [record(*one) for one in code.code], "code_count")

    def _add_symbols(self) -> None:
        manifest, of_symbols = self._manifest, self._numbers.of_symbols
        used = [one for one in manifest.symbols if one.name in of_symbols]
        self._array(
            "symbol ", "symbols", [record(one.input, one.axis, of_symbols[one.name]) for one in used], "symbol_count"
        )
        known = [of_symbols.get(name) for name in manifest.sizes]
        # A size that no formula has is a number that nothing reads.
        self._int_array("size_numbers", [self._numbers.word(0) if one is None else one for one in known])
        self._array("char *const ", "size_names", [literal(name) for name in manifest.sizes], "size_count")
        self._fields["parts"] = str(of_symbols.get(manifest.parts or "", -1))

    def _add_tensors(self, what: str, tensors: Sequence[Tensor]) -> None:
        rows: list[str] = []
        for number, tensor in enumerate(tensors):
            prefix = f"{what}_{number}"
            fixed = [one if isinstance(one, int) else -1 for one in tensor.shape]
            needed = tensor.needed_by or ("",) * len(tensor.shape)
            self._parts += [
                array("int64_t ", f"{prefix}_shape", map(whole, fixed)),
                numbers(f"{prefix}_dims", [self._number(one) for one in tensor.shape]),
                array("char *const ", f"{prefix}_texts", [literal(to_text(one)) for one in tensor.shape]),
                array("char *const ", f"{prefix}_needed", map(optional_literal, needed)),
            ]
            width = numpy_dtype(tensor.dtype).itemsize
            follows = int(any(_depends(one, self._told_by_runs()) for one in tensor.shape))
            kind = f"{self._name.upper()}_{tensor.dtype.upper()}"
            known = kind, width, len(fixed), f"{prefix}_shape", follows, literal(tensor.format)
            names = (f"{prefix}_dims", f"{prefix}_texts", f"{prefix}_needed")
            rows.append(record(record(literal(tensor.name), *known), tensor.buffer, int(tensor.squeezed), *names))
        self._array("tensor ", f"{what}s", rows, f"{what}_count")
        if what == "input":
            self._fields["counts_runs"] = str(len(tensors) - len(self._manifest.given_inputs))

    def _add_states(self) -> None:
        """Which tensors callers give and get, and which stay in the handle."""
        manifest = self._manifest
        kept = {pair.input for pair in manifest.state}, {pair.output for pair in manifest.state}
        for what, count, hidden in (
            ("input", len(manifest.given_inputs), kept[0]),
            ("output", len(manifest.outputs), kept[1]),
        ):
            shown = [number for number in range(count) if number not in hidden]
            self._int_array(f"shown_{what}s", shown)
            self._fields[f"shown_{what}_count"] = str(len(shown))
        rows = [
            record(pair.input, pair.output, self._weight_places.get(first_value(manifest.inputs[pair.input].name), -1))
            for pair in manifest.state
        ]
        self._array("state_pair ", "states", rows, "state_count")

    def _told_by_runs(self) -> Sequence[str]:
        """Sizes, and lengths of states that grow from run to run."""
        manifest = self._manifest
        grown = [
            pair.input
            for pair in manifest.state
            if manifest.inputs[pair.input].shape != manifest.outputs[pair.output].shape
        ]
        return [*manifest.sizes, *(symbol.name for symbol in manifest.symbols if symbol.input in grown)]

    def _add_ranges(self) -> None:
        found: list[str] = []
        for number, profile in enumerate(self._manifest.profiles):
            for i, tensor in enumerate(self._manifest.given_inputs):
                covered = profile.get(tensor.name)
                if covered is None or len(covered.minimum) != len(tensor.shape):
                    continue
                for axis, (low, high) in enumerate(zip(covered.minimum, covered.maximum, strict=True)):
                    found.append(record(number, i, axis, whole(low), whole(high)))
        self._array("length_range ", "ranges", found, "range_count")
        self._fields["profile_count"] = str(len(self._manifest.profiles))

    def _add_requirements(self) -> None:
        found: list[str] = []
        for one in self._program.requirements:
            numbered = [self._number(formula) for formula in (one.left, one.right, one.where)]
            named = [to_text(length) for length in (one.left, one.right) if not isinstance(length, int)]
            formulas = f" ({' and '.join(named)})" if named else ""
            found.append(record(one.relation.upper(), *numbered, *map(literal, (one.layer, one.text, formulas))))
        self._array("requirement ", "requirements", found)
        self._fields["requirement_count"] = str(len(self._manifest.requirements))

    def _add_buffers(self) -> None:
        manifest, plan = self._manifest, self._plan
        lives = dict(zip(plan.owners, plan.lives, strict=True))
        classes: dict[str, int] = {}
        rewritable = set(plan.borders.buffers)
        rows: list[str] = []
        for i, one in enumerate(manifest.buffers):
            halo = -1
            if i in lives and one.halo is not None:
                halo = classes.setdefault(one.halo, len(classes))
            source = -1 if one.view_of is None else one.view_of
            places = self._number(one.size), manifest.roots[i], source, self._number(one.view_offset)
            weight = self._weight_places.get(one.weight or "", 0) if one.kind == "weight" and source < 0 else 0
            rest = *lives.get(i, (0, 0)), halo, one.fill, int(i in rewritable), whole(weight)
            rows.append(record(one.kind.upper(), *places, one.align, *rest))
        self._array("buffer ", "buffers", rows, "buffer_count")
        self._fields["class_count"] = str(len(classes))

    def _add_launches(self) -> None:
        manifest = self._manifest
        writers = self._border_writers()
        kept = _Contracts(self._numbers.of_contracts)
        always = certain(manifest.program)
        arguments: list[str] = []
        written: list[int] = []
        borders: list[int] = []
        rows: list[str] = []
        parameters = 0
        for number, launch in enumerate(manifest.launches):
            kernel = manifest.kernels[launch.kernel]
            first, terms = len(arguments), self._terms[number]
            arguments += [self._argument(one, kind) for one, kind in zip(launch.args, kernel.args, strict=True)]
            flags = int(launch.no_barrier) + 2 * int(launch.serial)
            pointers = BufferArgument, MapArgument
            own = [one.buffer for k in sorted(kernel.written) if isinstance(one := launch.args[k], pointers)]
            of_borders = writers.get(number, [])
            places = parameters, parameters + _lines(len(launch.args))
            head = launch.kernel, flags, places[0], first, len(launch.args)
            proof = int(terms is None), int(number in always), *kept.add(terms or ())
            tail = len(written), len(own), len(borders), len(of_borders), places[1]
            rows.append(record(*head, *proof, *tail, literal(launch.layer[:200])))
            written += own
            borders += of_borders
            parameters = places[1] + (_lines(_BORDER_HEAD + _BORDER_WORDS * len(of_borders)) if of_borders else 0)
        self._array("argument ", "arguments", arguments)
        self._array("contract ", "contracts", kept.contracts)
        self._array("extent ", "extents", kept.extents)
        self._int_array("naturals", kept.naturals)
        self._int_array("written", written)
        self._int_array("border_writers", borders)
        self._array("launch ", "launches", rows, "launch_count")
        self._fields["parameter_count"] = str(parameters)

    def _argument(self, one: object, kind: str) -> str:
        if isinstance(one, BufferArgument):
            extent = self._number(0 if one.extent is None else one.extent)
            return record("POINTER", one.buffer, self._number(one.offset), extent)
        if isinstance(one, FloatArgument):
            return record("FIXED", self._numbers.word(bits_of(one.value)), 0, 0)
        assert isinstance(one, IntArgument)
        return record("NARROW" if kind == "i32" else "WHOLE", self._number(one.value), 0, 0)

    def _border_writers(self) -> Mapping[int, list[int]]:
        found: dict[int, list[int]] = {}
        for launch, border in self._plan.borders.writers:
            found.setdefault(launch, []).append(border)
        return found

    def _add_borders(self) -> None:
        rows = [
            record(i, record(*[self._number(one) for one in self._manifest.buffers[i].border]))
            for i in self._plan.borders.buffers
        ]
        self._array("border ", "borders", rows, "border_count")

    def _add_steps(self) -> None:
        rows = [
            record(one.kind, one.a, one.b, one.c, one.middle, one.end, literal(one.message))
            for one in self._program.steps
        ]
        self._array("step ", "steps", rows, "step_count")
        self._array("place ", "places", [record(*key) for key in self._program.places], "place_count")

    def _add_features(self) -> None:
        names = [name.removeprefix("+") for name in self._manifest.target.features if not name.startswith("-")]
        known = _features_with_test(self._manifest)
        rows = [record(literal(name), *known[name][:-1], literal(known[name][-1])) for name in names]
        self._array("feature ", "features", rows, "feature_count")
        self._fields["needs_matrix_unit"] = str(int(_MATRIX_UNIT in names))

    def _add_kernels(self) -> None:
        kernels = self._manifest.kernels
        labels = [f" __asm__({literal(one.symbol)})" if self._has_own_symbols else "" for one in kernels]
        declared = [f"void kernel_{i}(void){label};" for i, label in enumerate(labels)]
        self._parts.append("\n".join([*declared, ""]))
        # A function's address is a pointer to data on every system that such libraries are made for.
        self._array("uintptr_t ", "kernel_addresses", [f"(uintptr_t)kernel_{i}" for i in range(len(kernels))])
        del self._fields["kernel_addresses"]
        self._fields["kernels"] = "(void *const *)kernel_addresses"


class _Contracts:
    """The rows of the contracts of all launches: those of launches that are alike once."""

    def __init__(self, numbers_of: Mapping[int, int]) -> None:
        self._numbers_of = numbers_of
        self._known: dict[int, tuple[int, int]] = {}
        self.contracts: list[str] = []
        self.extents: list[str] = []
        self.naturals: list[int] = []

    def add(self, terms: Sequence[Terms]) -> tuple[int, int]:
        """The first row, and how many there are."""
        key = id(terms)
        if terms and key in self._known:
            return self._known[key]
        found = len(self.contracts), len(terms)
        for one in terms:
            natural = sorted(self._numbers_of[number] for number in one.natural)
            first = len(self.naturals), len(natural), len(self.extents), len(one.touched)
            self.contracts.append(record(*first))
            self.naturals += natural
            self.extents += [
                record(t.place, t.width, *(self._numbers_of[number] for number in (t.low, t.high, t.guard)))
                for t in one.touched
            ]
        self._known[key] = found
        return found


def _lines(count: int) -> int:
    """So many words in whole lines, one at least."""
    return -(-max(count, 1) // _LINE) * _LINE


def _depends(formula: Expression, symbols: Sequence[str]) -> bool:
    if isinstance(formula, tuple):
        return _depends(formula[1], symbols) or _depends(formula[2], symbols)
    return formula in symbols


def first_value(state: str) -> str:
    """The name among the weights of what a state is in the first run."""
    return f"\0state {state}"


def _features_with_test(manifest: Manifest) -> Mapping[str, tuple[int, int, int, int, str]]:
    """The numbers and the text of the test for each feature, as C has them."""
    triple = manifest.target.triple
    if architecture_of(triple) == "aarch64":
        return ARM_FEATURES.get(system_of(triple), {})
    return {name: (*numbers, "") for name, numbers in FEATURES.items()}


def features_without_test(manifest: Manifest) -> Iterator[str]:
    """Features of the target that no table has."""
    known = _features_with_test(manifest)
    for name in manifest.target.features:
        if not name.startswith("-") and name.removeprefix("+") not in known:
            yield name
