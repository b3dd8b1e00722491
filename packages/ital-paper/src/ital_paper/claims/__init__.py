"""The paper's claims, each a rule that the data may fail."""
