"""What loop nests are made of: affine accesses, rows, blocks with lanes, and what scalar regions ask of a nest."""
