"""Load on a cluster: a producer and a consumer that count every record."""
