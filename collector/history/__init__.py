"""What loads were in weeks past, and what they will be in hours to come."""
