"""Results of a solve: sealed plans, reasons, what-if answers, and edited plans."""
