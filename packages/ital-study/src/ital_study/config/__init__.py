"""The configuration of a study: records, reading, texts, languages."""
