"""The tasks on brokers, and one of them, as plain values."""
