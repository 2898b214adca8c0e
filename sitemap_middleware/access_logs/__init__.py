"""Reads access logs of web servers, for the command import-log."""
