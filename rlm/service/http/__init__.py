"""The REST server: an ASGI application behind a gateway of checks, and how it is served."""
