"Strategies: how kinds of questions were answered, stored, found and carried from store to store."
