"""Files of other tools, in and out: what they hold becomes values of the model.

Kafka's own command line (`kafka-topics --describe`, `kafka-reassign-partitions`,
`kafka-leader-election`), Cruise Control's capacity file, and tables of loads and
brokers as any spreadsheet writes them.
"""
