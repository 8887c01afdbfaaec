"""Serving on a cluster: a deployment for Ray Serve, batch inference for Ray Data. Needs the packages of `mlirt[ray]`."""
