"Vector index: quantised codes, scan, compaction, files."
