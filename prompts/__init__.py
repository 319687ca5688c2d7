"""Prompts: one jinja2 file each, rendered strictly and fingerprinted."""

from rubricate.prompts.loader import Prompt, load_prompt, prompt_names

__all__ = ["Prompt", "load_prompt", "prompt_names"]
