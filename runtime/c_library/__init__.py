"""Writes an engine as a C library: the plan's code, its tables, and a host program in C."""
