"""Matrix products in tiles: a block of threads computes a tile of the result from tiles in shared memory."""
