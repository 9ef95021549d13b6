"Whether a run was right, what it teaches, and questions in an order that teaches."
