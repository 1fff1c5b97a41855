"""The stock tools' JSON; see `model.exchange.reassignment`."""

from model.exchange.reassignment import reassignment, rollback

__all__ = ["reassignment", "rollback"]
