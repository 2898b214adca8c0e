"""Support for the tests: drivers of both protocols, twin apps, real servers and store engines, document validation."""
