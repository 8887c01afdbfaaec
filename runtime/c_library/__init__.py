"""Writes an engine for processors as a C library: the plan's object code, its tables, and a host program in C."""
