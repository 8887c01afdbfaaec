"""Serving on a cluster: a deployment for Ray Serve, batches for Ray Data. Needs the packages of `mlirt[ray]`."""
