"Lexical index: postings, query plans, BM25."
