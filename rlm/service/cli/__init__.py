"""The command line: `rlm`, its groups of commands, and what they share."""

from rlm.service.cli.main import COMMANDS, main

__all__ = ["COMMANDS", "main"]
