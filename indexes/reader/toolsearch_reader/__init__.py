"""The weights of toolsearch's reader."""

from pathlib import Path

FOLDER = Path(__file__).parent / "model"
"""model.onnx and tokenizer.json, as `toolsearch_indexes.encoders.onnx.OnnxReader` opens them."""
