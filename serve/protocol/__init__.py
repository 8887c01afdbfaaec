"""The Open Inference Protocol (KServe v2) as data: requests and responses in JSON with binary tensors, metadata."""
