"""Verifiers: hard rules that code decides. Importing this package registers the built-in ones."""

from rubricate.judges.verifiers import (
    citations,
    content,
    generated,
    hygiene,
    jsondoc,
    length,
    match,
    praise,
    selfeval,
    structure,
)
from rubricate.judges.verifiers.ifeval import IFEVAL_INSTRUCTIONS, ifeval_check
from rubricate.judges.verifiers.registry import (
    Check,
    Input,
    Verifier,
    VerifierArgs,
    check_verifier,
    get_verifier,
    run_verifier,
    run_verifier_async,
    verifier,
    verifier_names,
)
from rubricate.judges.verifiers.text import register_tokenizer

# Imported for what they register.
_BUILT_IN = (citations, content, generated, hygiene, jsondoc, length, match, praise, selfeval, structure)

__all__ = [
    "IFEVAL_INSTRUCTIONS",
    "Check",
    "Input",
    "Verifier",
    "VerifierArgs",
    "check_verifier",
    "get_verifier",
    "ifeval_check",
    "register_tokenizer",
    "run_verifier",
    "run_verifier_async",
    "verifier",
    "verifier_names",
]
