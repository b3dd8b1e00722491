"""Simulated participants, here and over HTTP."""
