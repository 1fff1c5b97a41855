"""How one move is done on AutoMQ, on tiered storage and on plain disks."""
