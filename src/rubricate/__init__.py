"""Rubric-based reward modelling."""
