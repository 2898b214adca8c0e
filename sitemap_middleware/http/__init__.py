"""Requests and responses as the service sees them, whatever the protocol, and which requests count as evidence."""
