"""What the screens show, as pure functions of the loop's view; no widgets here."""
