"""Short ways to run a verifier in tests."""

from __future__ import annotations

from rubricate.judges.verifiers import Check, Input, run_verifier


def check(name: str, response: str, *, prompt: str = "", reference: str | None = None, finish: str = "",
          **args: object) -> Check:  # fmt: skip
    """Run a verifier with keyword arguments."""
    return run_verifier(name, args, Input(response, prompt, reference, finish))


def met(name: str, response: str, **args: object) -> bool:
    """Whether a verifier that needs no more than the response is met."""
    return run_verifier(name, args, Input(response)).met


def value(name: str, response: str, **args: object) -> float | None:
    """What the verifier measured."""
    return run_verifier(name, args, Input(response)).value
