"""A Java runtime and the pinned jars that run on it."""
