"""Passes that change nothing and stop the compilation where a law of the IR is broken."""
