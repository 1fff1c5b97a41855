"""A cluster in this process: placement, loads and moves that take time and bytes.

It answers the executor's calls as Kafka or AutoMQ do (`simulated_admin`), has a clock
of its own (`cluster`), and injects faults on request (`faults`).
"""
