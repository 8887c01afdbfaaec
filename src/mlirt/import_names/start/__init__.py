"""The folder that `python -m mlirt.as_tensorrt` puts on PYTHONPATH: Python runs its `sitecustomize` at each start."""
