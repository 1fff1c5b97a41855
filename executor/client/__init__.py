"""Administrative requests to Kafka, in batches, under the run's lease."""
