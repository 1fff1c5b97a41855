"""The demo's uneven load."""

from typing import Final

DEMO_WEIGHTS: Final = (22.0, 18.0, 16.0, 12.0, 11.0, 9.0, 7.0, 5.0)
"""Shares in percent of eight partitions. All on one broker they are far from level;
spread as 22+11, 18+9+7 and 16+12+5 three brokers are within 10 % of their mean."""
