"""The tables of a study: columns, codebooks, answers, flags."""
