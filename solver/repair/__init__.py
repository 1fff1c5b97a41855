"""Repairs of broken racks and exceeded limits, before plans are compared."""
