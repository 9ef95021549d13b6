"""Recall: what memory does with attention: working memory and local search, links between memories, anchors."""
