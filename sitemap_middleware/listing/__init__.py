"""Listing: decides which pages are listed, and builds their entries."""
