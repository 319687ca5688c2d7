"""Verifiers: hard rules that code decides."""

from rubricate.judges.verifiers.registry import (
    Check,
    Input,
    Verifier,
    VerifierArgs,
    get_verifier,
    run_verifier,
    verifier,
    verifier_names,
)

__all__ = [
    "Check",
    "Input",
    "Verifier",
    "VerifierArgs",
    "get_verifier",
    "run_verifier",
    "verifier",
    "verifier_names",
]
