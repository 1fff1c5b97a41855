"""The broker table, its bars and its details as plain values."""
