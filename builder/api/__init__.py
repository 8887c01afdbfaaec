"""Building by TensorRT's names: builder, its configuration, shape profiles."""
