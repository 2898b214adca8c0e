"""Which requests count as evidence: those that an anonymous crawler could have sent for a whole page."""
