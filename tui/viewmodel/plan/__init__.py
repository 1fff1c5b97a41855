"""The plan screen as plain values."""
