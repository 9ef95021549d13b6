"""Stores and sessions of agent frameworks over a `Memory`. Each module needs its framework, and nothing here imports one by itself."""
