"""A model repository for Triton Inference Server, whose Python back end runs a plan."""
