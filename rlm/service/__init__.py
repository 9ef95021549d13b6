"""The interfaces: the Memory facade and the command line."""
