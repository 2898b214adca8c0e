"""Apps that the tests run under real servers; most are other people's, wrapped without touching them."""
