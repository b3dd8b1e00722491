"""What a study found: measures, answers, power."""
