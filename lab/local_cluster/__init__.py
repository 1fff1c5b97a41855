"""Real brokers and S3 on this machine."""
