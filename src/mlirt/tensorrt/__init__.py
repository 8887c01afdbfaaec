"""TensorRT's Python names (8.5): what `import mlirt as trt` offers besides its own; found on first use."""
