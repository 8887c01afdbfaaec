"""The version of the distribution, read by the build and written into plan files."""

__version__ = "0.1.0"
