"""How brokers are asked, and how their answers are read."""
