"""Stores on SQLite: a file, and memory."""
