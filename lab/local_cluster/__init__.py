"""Real brokers, S3, Spark and a fault-injecting proxy on this machine."""
