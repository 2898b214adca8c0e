"""How true the dates are, over simulated sites whose every change is known: `python -m benchmarks.truth`."""
