"""The screen: it shows the loop and passes on the operator's decisions."""

PUBLIC = ()
"""Modules that other packages may import; tests/test_layers.py enforces it."""
