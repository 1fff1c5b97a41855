"""From the observed state to a plan that can be reviewed."""
