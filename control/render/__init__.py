"""Plans, runs and snapshots as text, tables and files."""
