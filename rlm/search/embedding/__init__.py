"Models that turn texts into vectors, what is embedded of a memory, and the embeddings of a store."
