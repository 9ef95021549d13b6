"""Rules: what to do when, how they earn their place, and how their conflicts are resolved."""
