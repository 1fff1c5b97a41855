"""The problem as arrays: which replica may be placed where, and at what cost."""
