"""The resource that holds settings of all brokers together, as kafka-python sends it.

Kafka calls it by the empty name, and any broker answers for it; the driver takes the
name of a broker's resource for the number of the broker to ask.
"""

from typing import Self

from model.ids import BrokerId


class ClusterDefault(str):
    """The empty name; as a number it is the broker that is asked."""

    _broker: BrokerId

    def __new__(cls, broker: BrokerId) -> Self:
        name = super().__new__(cls, "")
        name._broker = broker
        return name

    def __int__(self) -> int:
        return self._broker
