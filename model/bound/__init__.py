"""An independent lower bound on the imbalance of any plan."""
