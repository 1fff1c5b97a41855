"""Record what the screen shows, and play it back."""
