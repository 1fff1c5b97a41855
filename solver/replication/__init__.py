"""Other replication factors: where replicas are added, and which are removed."""
