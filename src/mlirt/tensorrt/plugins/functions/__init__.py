"""Layers that Python functions compute: `mlirt.op`, and TensorRT 10's decorators (`mlirt.plugin`)."""
