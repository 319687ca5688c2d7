"""Trainers that fit rubric generators and judges, and policies under rubric rewards. Empty so far."""
