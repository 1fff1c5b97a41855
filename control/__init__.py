"""The loop observe, plan, approve, apply; the command line and its settings."""
