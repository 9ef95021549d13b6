<<<<<<< HEAD
"""The agent: models, sandbox, loop, trajectories, ontology views, procedural memory."""
=======
"""The agent: ontologies in bounded views, a sandbox, the loop, and what it learns from its runs."""
>>>>>>> onto
