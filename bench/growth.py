"""How costs grow: generated networks of many nodes and many shapes, many callers, with onnxruntime beside.

    python bench/growth.py shapes [--launches 12,35,335,1500] [--shapes 1,4,5,64,1000]
    python bench/growth.py lengths [--layers 6,12,24] [--bits 4,32] [--caches grouped concatenated whole]
    python bench/growth.py requests [--parts floor,busy,idle,streams,callers] [--callers 1,2,4,16]
    python bench/growth.py activations [FOLDER] [--targets cpu,cuda] [--shapes static,dynamic]
    python bench/growth.py nodes [--kinds chain,fan-out] [--nodes 100,300,1000,3000,10000] [--target cpu|cuda]
    python bench/growth.py counts [--kinds chain,fan-out] [--nodes 60,240] [--target cpu|cuda]
    python bench/growth.py weights [--products 2,7,30] [--storage float32,float16] [--home external|inside]

Each part is a module with the arguments that it takes. Other work on the machine shows in seconds and milliseconds:
compare only what one command printed. Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import NamedTuple

import growth_activations
import growth_counts
import growth_lengths
import growth_nodes
import growth_requests
import growth_shapes
import growth_weights


class Part(NamedTuple):
    """One thing that grows."""

    what: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], None]


PARTS: Mapping[str, Part] = {
    "shapes": Part(
        "runs of shapes that are new, come again, and take turns", growth_shapes.add_arguments, growth_shapes.run
    ),
    "lengths": Part(
        "decoders whose caches grow by a word with each run", growth_lengths.add_arguments, growth_lengths.run
    ),
    "requests": Part(
        "callers and engines at once, and what a call costs", growth_requests.add_arguments, growth_requests.run
    ),
    "nodes": Part(
        "seconds and memory of a build, by the nodes of a network", growth_nodes.add_arguments, growth_nodes.run
    ),
    "counts": Part(
        "calls of functions in a build, by the nodes of a network", growth_counts.add_arguments, growth_counts.run
    ),
    "weights": Part(
        "memory of builds, saves, loads and runs, by bytes of weights", growth_weights.add_arguments, growth_weights.run
    ),
    "activations": Part(
        "what plans hold at once, and what their arenas take", growth_activations.add_arguments, growth_activations.run
    ),
}


def main() -> None:
    """Measure one part and print its tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    for name, part in PARTS.items():
        part.add_arguments(parts.add_parser(name, help=part.what, description=part.what))
    arguments = parser.parse_args()
    PARTS[arguments.part].run(arguments)


if __name__ == "__main__":
    main()
