"""One module a command; imported when the command runs, so that help stays fast."""
