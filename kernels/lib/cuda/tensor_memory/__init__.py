"""Products whose accumulators lie in tensor memory (tcgen05), with the loads and the epilogue of warpgroups."""
