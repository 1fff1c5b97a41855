"""Clusters for the demo and the tests: local, simulated and synthetic ones."""

PUBLIC = (
    "load.load_generator",
    "local_cluster.kafka_versions",
    "local_cluster.local_cluster",
    "local_cluster.reaper",
    "local_cluster.tcp_ports",
    "simulated_cluster.demo_cluster",
    "simulated_cluster.live_cluster",
    "simulated_cluster.quiet_observer",
    "synthetic.load_curves",
    "synthetic.observe",
    "synthetic.shape",
    "synthetic.write",
    "time_lapse.broker_faults",
    "time_lapse.hourly_loads",
    "time_lapse.load_shapes",
    "time_lapse.load_table",
    "time_lapse.time_lapse_cluster",
    "time_lapse.time_lapse_executor",
    "time_lapse.varying_loads",
)
"""Modules that other packages may import; tests/test_layers.py enforces it."""
