"""Passes that turn one dialect into the next, and the lowerings of each family.

Beside the passes lies what every tactic is written with: `lowering.py`, `tactics.py`, `kernel_builder.py` and
`placement.py`. A folder is one of these:

- a family of fused ops (`matmul/`, `pointwise/`, ..): its tactics, and the code that only they share;
- a pipeline step (`trt_to_fused/`, `layouts/`, `control/`; `workers/` and `threads/`, which map loops to machines);
- what tactics of several families are made of: `loops/` on both targets, `register_tiles/` on CPUs, and on GPUs
  `tiles/`, `warpgroups/`, `thread_rows/`, `transposition/` and `library/`; `numbers/` knows how large numbers can be.
"""
