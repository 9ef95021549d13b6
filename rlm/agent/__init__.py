"""The agent: ontologies in bounded views, a sandbox, the loop, and what it learns from its runs."""
