"""Assignment of the partitions of a topic that does not exist yet."""
