"""Rendering: turns entries into XML documents, and compresses, caches and serves them."""
