"""Which moves run when, and how long all of them take."""
