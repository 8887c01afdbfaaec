"""Layers that are given as Python functions: those of numbers are read and become layers, others are plugins."""
