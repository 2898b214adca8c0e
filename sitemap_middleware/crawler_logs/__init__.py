"""Reads access logs: which crawlers came, what they got, and what they missed. Nothing is stored."""
