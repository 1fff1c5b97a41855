"""The demo, on a local cluster or a simulated one."""
