"""One state of a cluster: brokers, replicas, loads, and the file that holds it."""
