"""Watching: what is noted as responses go by, and asked for besides; never a cost that a page would feel."""
