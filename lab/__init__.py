"""A local cluster of real brokers for the demo and the tests, with load on it."""
