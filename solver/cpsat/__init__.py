"""The exact model for OR-Tools' CP-SAT: variables, constraints and objective."""
