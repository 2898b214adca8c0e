"""Observation: records responses as they pass, and requests further pages to check them."""
