"""The run screen and the list of previous runs as plain values."""
