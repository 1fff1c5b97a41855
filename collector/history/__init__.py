"""The loads of past weeks, and forecasts of the coming hours."""
