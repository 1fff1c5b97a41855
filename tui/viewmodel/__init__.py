"""What the screen shows, as pure functions of the loop's view; no widgets here."""
