"""The append-only record of each run, from which it is resumed or rolled back."""
