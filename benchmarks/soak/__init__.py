"""A site under steady traffic for half an hour, its store killed now and then: `python -m benchmarks.soak`."""
