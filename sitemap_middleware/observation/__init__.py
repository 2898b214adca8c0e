"""Observation: what is recorded while responses pass, and requested in addition."""
