"""Runs in one simulated world in which everything fails together, driven by one seed.

Journal, executor, lease and archive are the shipped ones; cluster, network, disk, bucket and
clocks are simulated (`fire_world`), faults are drawn from the seed (`scenarios`), and what must
hold is checked after every step (`invariants`).
"""
