"""Running by TensorRT's names: runtime, engine, execution context, inspector, profiler."""
