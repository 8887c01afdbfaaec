"""Which launches must write the borders of buffers again that other buffers have written over.

Whoever touches a buffer first on its way through the program writes its inside, and leaves the border as it was. Pure
arithmetic over a manifest.
"""

from collections.abc import Collection, Sequence

from mlirt.runtime.manifest import BufferArgument, Manifest, MapArgument
from mlirt.runtime.program import Branch, Loop, Step


def first_touches(manifest: Manifest, buffers: Collection[int]) -> list[tuple[int, int]]:
    """(launch, buffer) for every launch that may be the first in the life of one of the `buffers` to touch it."""
    walk = _Walk(manifest, frozenset(buffers))
    walk.through(manifest.program, set())
    return walk.found


class _Walk:
    def __init__(self, manifest: Manifest, buffers: frozenset[int]) -> None:
        self.found: list[tuple[int, int]] = []
        self._touched: list[list[int]] = []
        for launch in manifest.launches:
            pointers = (one.buffer for one in launch.args if isinstance(one, BufferArgument | MapArgument))
            roots = dict.fromkeys(manifest.roots[i] for i in pointers)
            self._touched.append([root for root in roots if root in buffers])

    def through(self, program: Sequence[Step], known: set[int]) -> set[int]:
        """What has been touched for certain behind some steps, where `known` has been before them."""
        for step in program:
            if isinstance(step, int):
                self.found += [(step, root) for root in self._touched[step] if root not in known]
                known.update(self._touched[step])
            elif isinstance(step, Branch):
                known = self.through(step.then, set(known)) & self.through(step.otherwise, set(known))
            elif isinstance(step, Loop):
                known = self.through(step.before, known)
                self.through(step.body, set(known))
        return known
