"""Adapters translate between WSGI or ASGI and the service. They decide nothing."""
