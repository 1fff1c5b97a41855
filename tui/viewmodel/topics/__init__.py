"""The topic and partition tables as plain values."""
