"""The loop on a simulated cluster under a clock that jumps, to try a policy first."""
