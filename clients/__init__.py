"""How plimsoll's clients reach a cluster, whichever driver they are made with."""
