"""The parts of a screen; each repaints only what has changed."""
