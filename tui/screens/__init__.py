"""Screens, and the questions that are laid over them."""
