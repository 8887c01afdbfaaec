"""Passes that change nothing and stop the compilation where an invariant of the IR is broken."""
