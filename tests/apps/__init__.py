"""Apps that the tests run under real servers, most of them published apps, wrapped without changes."""
