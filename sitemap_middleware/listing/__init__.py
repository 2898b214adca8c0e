"""Listing: routes, values and pages in, entries out."""
