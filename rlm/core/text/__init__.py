"Text: normal forms, tokens in two languages, sentences, and what may be stored."

from rlm.core.text.normal_form import compose_hangul, normalise
from rlm.core.text.normal_form import clip, is_blank, is_wordless, replace_surrogates, valid_label, valid_text
from rlm.core.text.tokenizer import FTS_TOKENIZE, FUNCTION_WORDS, TOKENISER_VERSION, fts_query, sentence_spans, split_sentences, tokens

__all__ = ["FTS_TOKENIZE", "FUNCTION_WORDS", "TOKENISER_VERSION", "clip", "compose_hangul", "fts_query", "is_blank", "is_wordless",
           "normalise", "replace_surrogates", "sentence_spans", "split_sentences", "tokens", "valid_label", "valid_text"]
