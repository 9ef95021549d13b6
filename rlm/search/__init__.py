"Search: embedding, lexical and vector indexes, ranking."
