"""Adapters: WSGI and ASGI, translated. They never decide."""
