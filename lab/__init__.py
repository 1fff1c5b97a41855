"""Clusters for the demo and the tests: local, simulated and synthetic ones."""

PUBLIC = (
    "load.load_generator",
    "local_cluster.local_cluster",
    "local_cluster.reaper",
    "local_cluster.tcp_ports",
    "simulated_cluster.demo_cluster",
    "simulated_cluster.live_cluster",
    "synthetic.load_curves",
    "synthetic.observe",
    "synthetic.shape",
    "synthetic.write",
)
"""Modules that other packages may import; tests/test_layers.py enforces it."""
