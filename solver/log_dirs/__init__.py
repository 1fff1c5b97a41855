"""The log directory of each replica on its broker (JBOD).

Brokers are chosen first. Then each broker is a problem of its own: arriving replicas
get a directory, and remaining ones change theirs where that pays.
"""
