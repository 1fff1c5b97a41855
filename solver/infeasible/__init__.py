"""Why no placement keeps every rule: reasons by name, and minimal conflicts."""
