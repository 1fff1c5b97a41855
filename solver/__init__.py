"""Plans: a compiled problem, CP-SAT with a proven bound, and the result."""
