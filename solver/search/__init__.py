"""Local search for clusters beyond the exact model's size, with a dual bound."""
