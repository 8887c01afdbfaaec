"""The formulas of a plan, prepared once so that binding a set of shapes fills arrays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from mlirt.runtime.borders import Borders
from mlirt.runtime.formula_table import MAX_BYTES, EvaluatedFormulas, FormulaTable
from mlirt.runtime.launch_proofs import LaunchProofs
from mlirt.runtime.launch_words import LaunchArguments
from mlirt.runtime.manifest import Launch, Manifest
from mlirt.runtime.placements import Placements
from mlirt.runtime.program import RELATIONS

# Lengths that grow get room for so many quarters of what they are, and so many more: the first that is not too much.
_ROOM = ((8, 128), (6, 32), (5, 8))
_ROOM_BYTES = 1 << 20


class PlanFormulas:
    """What of binding shapes is the same for all of them."""

    def __init__(self, manifest: Manifest) -> None:
        self.table = table = FormulaTable()
        self.arguments = LaunchArguments(manifest, table)
        buffers = manifest.buffers
        self._sizes = np.array([table.add(one.size) for one in buffers], np.intp)
        self._distinct_sizes = np.unique(self._sizes)
        self._roots = np.array(manifest.roots, np.intp)
        self._first_of_kinds = np.unique(self.arguments.buffer_kinds, return_index=True)[1]
        """Buffers such that each has the sizes of one of them, and lies where that one does."""
        self._views = _by_depth(manifest, table)
        self._requirements: list[tuple[int, Callable[[int, int], bool], int, int]] = [
            (table.add(one.where), RELATIONS[one.relation], table.add(one.left), table.add(one.right))
            for one in manifest.requirements
        ]
        for tensor in (*manifest.inputs, *manifest.outputs):
            for dim in tensor.shape:
                table.add(dim)
        for launch in manifest.launches:
            for size in launch.grid:
                table.add(size)
        self.is_straight = all(isinstance(step, int) for step in manifest.program)
        """Whether a run makes all launches one after the other, whatever the shapes are."""
        self.fills_arrays = manifest.target.kind == "cpu" and all(
            launch.grid == (1, 1, 1) for launch in manifest.launches
        )
        """Whether all numbers of launches are words."""
        self.proofs = LaunchProofs(manifest, self.arguments, table)
        """What launches may touch."""
        self.owners = [i for i, one in enumerate(buffers) if one.kind == "arena" and one.view_of is None]
        """The buffers that lie in the arena themselves."""
        self.owner_array = np.array(self.owners, np.intp)
        begins, ends = _concurrent_spans(manifest.launches)
        self.lives = [(begins[buffers[i].first], ends[buffers[i].last]) for i in self.owners]
        """The first and the last step at which each owner may be in use."""
        self.halos = [buffers[i].halo for i in self.owners]
        bordered = [i for i in self.owners if buffers[i].halo is not None]
        self.halo_array, self.halo_fills = np.array(bordered, np.intp), np.array([buffers[i].fill for i in bordered])
        """The owners that have a border, and (`halo_fills`) the byte that fills it."""
        self.given_offsets = [one for i in self.owners if (one := buffers[i].offset) is not None]
        self.borders = Borders(manifest, table)
        rewritable = set(self.borders.buffers)
        self.placements = Placements(self.lives, self.halos, [i in rewritable for i in self.owners])

    def meets_requirements(self, evaluated: EvaluatedFormulas) -> bool:
        """Whether all lengths are as the layers need them; False also where one may have no value."""
        results = evaluated.results
        return evaluated.is_whole and all(
            not results[where] or relation(results[left], results[right])
            for where, relation, left, right in self._requirements
        )

    def unproved(self, evaluated: EvaluatedFormulas, words: np.ndarray, sizes: np.ndarray) -> list[int]:
        """The launches of which one by one has to be shown that they stay within their buffers."""
        return self.proofs.in_doubt(evaluated.results, words, sizes)

    def sizes(self, numbers: np.ndarray) -> np.ndarray | None:
        """The bytes of each buffer by the values of all formulas; None where one makes no sense."""
        sizes = numbers[self._distinct_sizes]
        if sizes.min(initial=0) < 0 or sizes.max(initial=0) > MAX_BYTES:
            return None
        return numbers[self._sizes]

    def room(self, values: Mapping[str, int], grown: Collection[str]) -> np.ndarray:
        """The bytes that each owner of memory in the arena gets where the lengths `grown` go on growing from `values`.

        As much as lets them grow for long, as long as the arena does not become much larger by it.
        """
        found = self._owned(values)
        assert found is not None
        needed = self.placements.largest_live_set(found)
        for numerator, more in _ROOM:
            larger = self._owned({**values, **{name: values[name] * numerator // 4 + more for name in grown}})
            if larger is not None:
                larger = np.maximum(found, larger)
                if self.placements.largest_live_set(larger) <= needed + max(_ROOM_BYTES, needed // 2):
                    return larger
        return found

    def _owned(self, values: Mapping[str, int]) -> np.ndarray | None:
        """The bytes of each owner of memory in the arena; None where a formula makes no sense."""
        evaluated = self.table.evaluated(values)
        sizes = self.sizes(evaluated.array()) if evaluated.is_whole else None
        return None if sizes is None else sizes[self.owner_array]

    def starts(self, numbers: np.ndarray, sizes: np.ndarray) -> np.ndarray | None:
        """Where each buffer starts in the one that owns its bytes; None where one reaches beyond that."""
        starts = np.zeros(len(sizes), np.int64)
        for views, sources, formulas in self._views:
            offsets = numbers[formulas]
            if offsets.min(initial=0) < 0 or offsets.max(initial=0) > MAX_BYTES:
                return None
            starts[views] = starts[sources] + offsets
        if self._views:
            starts[sizes == 0] = 0
            buffers = self._first_of_kinds
            if bool(np.any(starts[buffers] + sizes[buffers] > sizes[self._roots[buffers]])):
                return None
        return starts


def _by_depth(manifest: Manifest, table: FormulaTable) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Views of owners, then views of those and so on: their numbers, those of their sources, and their offsets."""
    depths: dict[int, list[tuple[int, int, int]]] = {}
    for i, buffer in enumerate(manifest.buffers):
        if buffer.view_of is None:
            continue
        depth, at = 0, buffer.view_of
        while (source := manifest.buffers[at].view_of) is not None:
            depth, at = depth + 1, source
        depths.setdefault(depth, []).append((i, buffer.view_of, table.add(buffer.view_offset)))
    levels = (np.array(depths[depth], np.intp) for depth in sorted(depths))
    return [(level[:, 0], level[:, 1], level[:, 2]) for level in levels]


def _concurrent_spans(launches: Sequence[Launch]) -> tuple[list[int], list[int]]:
    """For each step the first and the last step that may run at the same time, because no barrier stands between."""
    steps = range(max(len(launches), 1) + 1)
    begins, ends = list(steps), list(steps)
    joined = [i for i, launch in enumerate(launches) if launch.no_barrier]
    for i in joined:
        begins[i + 1] = begins[i]
    for i in reversed(joined):
        ends[i] = ends[i + 1]
    return begins, ends
