"""What the middleware costs, beside doing nothing and beside its peers: `python -m benchmarks`."""
