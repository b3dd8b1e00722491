"""Small errors in the sources, and whether the tests notice them (``make mutants``)."""
