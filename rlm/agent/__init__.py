"""The agent that answers over ontologies, and gets better at it."""
