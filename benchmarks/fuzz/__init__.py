"""Coverage-guided fuzzing of every reader of foreign bytes: `make fuzz MINUTES=10`."""
