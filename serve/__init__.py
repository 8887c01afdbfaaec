"""Serving: requests of many callers answered by one engine, in batches, from this process or from replicas.

`Batcher` puts requests together (`mlirt.serve.batching`), `ReplicaPool` keeps worker processes alive
(`mlirt.serve.replicas`), `Model` is one network under a name that can be replaced while it serves
(`mlirt.serve.models`), `Pipeline` runs one network on several GPUs (`mlirt.serve.pipeline`), and servers speak the Open
Inference Protocol (`mlirt.serve.http`, `mlirt.serve.grpc`).
All but the servers needs NumPy and the runtime alone.
"""
