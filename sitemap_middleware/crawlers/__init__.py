"""Visits of search and AI crawlers: who asked for which page, whether it was that crawler, and with which result."""
