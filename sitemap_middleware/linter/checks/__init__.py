"""Pure functions: each takes what was read, and returns what is wrong with it."""
