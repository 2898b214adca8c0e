"""Rendering: entries into XML documents, compressed, cached and served."""
