"""The version, in a file of its own so that anything may read it."""

__version__ = "0.1.0"
