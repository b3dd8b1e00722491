"""The robots that people teach: their world, their rules, one step."""
