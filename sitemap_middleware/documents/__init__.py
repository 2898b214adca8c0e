"""Documents: entries into XML, compressed in pieces that can be put in a row."""
