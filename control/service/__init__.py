"""The service: what is around the loop when it runs without a terminal."""
