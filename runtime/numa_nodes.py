"""Which processors have memory of their own (NUMA nodes), and where groups of workers are at home."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_SYSTEM = Path("/sys/devices/system/node")


def numa_nodes(allowed: frozenset[int], system: Path = _SYSTEM) -> list[frozenset[int]]:
    """The processors of each node, as far as this process may use them; one node where the system tells of none."""
    found: list[frozenset[int]] = []
    for folder in sorted(system.glob("node[0-9]*"), key=lambda folder: int(folder.name.removeprefix("node"))):
        try:
            processors = processor_list((folder / "cpulist").read_text("ascii")) & allowed
        except (OSError, ValueError):
            continue
        if processors:
            found.append(processors)
    return found if frozenset[int]().union(*found) == allowed else [allowed]


def processor_list(text: str) -> frozenset[int]:
    """The numbers in a list such as "0-3,8,10-11"; ValueError where it is none."""
    found: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if part:
            found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def homes(nodes: Sequence[frozenset[int]], groups: int, threads: int) -> list[list[frozenset[int] | None]]:
    """For each group the processors of each of its threads: one node's, where a group fits; None: any.

    Groups are spread over the nodes by how many processors these have; a group that is larger than its node takes the
    processors that come next.
    """
    if len(nodes) < 2:
        return [[None] * threads for _ in range(groups)]
    node_of = [node for node in nodes for _ in node]
    found: list[list[frozenset[int] | None]] = []
    for group in range(groups):
        first = group * len(node_of) // groups
        own = node_of[first]
        if threads <= len(own):
            found.append([own] * threads)
        else:
            found.append([node_of[(first + thread) % len(node_of)] for thread in range(threads)])
    return found
