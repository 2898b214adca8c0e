"""Commands: what people run at a terminal."""
