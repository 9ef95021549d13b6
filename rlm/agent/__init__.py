"""The agent: models, sandbox, loop, trajectories, ontology views, procedural memory."""
