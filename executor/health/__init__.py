"""What stops a run: broken limits, lost brokers, competing rebalancers."""
