"""The parts of a screen; each repaints only what differs from what it shows."""
