"""Replicas: worker processes that run the same plan, watched and started again where they end."""
