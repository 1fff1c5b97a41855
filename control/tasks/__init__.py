"""Tasks on brokers: requested once, kept in the state folder, continued after a crash."""
