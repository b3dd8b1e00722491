"""The paper's experiments: what is run, where it is kept, and how it is read."""
