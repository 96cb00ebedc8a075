"""Models for other runtimes: ONNX networks, the encoder as JSON and arrays, and a reader."""

from tabnsm.export.folder import READER, export_onnx

__all__ = ["READER", "export_onnx"]
