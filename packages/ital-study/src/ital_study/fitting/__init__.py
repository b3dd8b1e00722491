"""Which teacher is each person? Models, likelihoods, selection, recovery."""
