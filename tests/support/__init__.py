"""Support for the tests: drivers of both protocols, sample sites, real servers and store engines, document validation."""
