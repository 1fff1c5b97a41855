"""What clusters' own metrics reporters say, beside what the probe sees."""
