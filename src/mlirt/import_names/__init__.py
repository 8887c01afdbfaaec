"""The names by which programs import TensorRT and CUDA's runtime, bound to mlirt: `python -m mlirt.as_tensorrt`.

Nothing is imported here, since this is loaded whenever an interpreter starts under that command.
"""
