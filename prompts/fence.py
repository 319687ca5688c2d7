"""Fences around untrusted text in prompts: a block that only its writer can close, since its tag holds a nonce."""

from __future__ import annotations

import hashlib
import re

from rubricate.errors import ConfigError

__all__ = ["fence", "make_nonce", "unfence"]

_NONCE_DIGITS = 10
_LABEL = re.compile(r"[A-Za-z][A-Za-z0-9_.]*\Z")
_NONCE = re.compile(r"[A-Za-z0-9]+\Z")

# Texts that tokenizers turn into control tokens wherever they stand. One invisible word joiner inside keeps them
# plain text; joiners that are there already are counted, so that the way back is exact.
_JOINER = "\u2060"
_ANGLE = (
    r"\||\uff5c|/?think>|/?s>|/?bos>|/?eos>|/?pad>|/?unk>|/?mask>|/?cls>|/?sep>|start_of_\w+>|end_of_\w+>|channel\||turn\|"
    r"|<SYS>>|</SYS>>|/?think>|/?tools?>|/?tool_call>|/?tool_response>|[se]op>|eo[dt]>|unused_?\d+>|extra_id_\d+>"
    r"|SPECIAL_\d+>|image_soft_token>|repo_?name>|file_sep>|filename>|gh_stars>|issue_\w+>|jupyter_\w+>|commit_\w+>|fim_\w+>"
    r"|empty_output>"
)
_SQUARE = (
    r"/?(?:INST|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|ARGS|CALL_ID|SYSTEM_PROMPT|THINK|IMG\w*|AUDIO"
    r"|PREFIX|SUFFIX|MIDDLE|[gs]?MASK|CLS|SEP)\]|\|"
)
_CONTROL = re.compile(rf"<{_JOINER}*(?={_ANGLE})|\[{_JOINER}*(?={_SQUARE})", re.I)
_JOINED = re.compile(rf"(<{_JOINER}*){_JOINER}(?={_ANGLE})|(\[{_JOINER}*){_JOINER}(?={_SQUARE})", re.I)


def make_nonce(key: bytes | str, *texts: str) -> str:
    """A nonce for the fences of one prompt: 10 hex digits of BLAKE2 over the first text, keyed by `key`.

    The first text is the prompt (the task), so that all responses to it share their fences and with them a server's
    prefix cache. The other texts are only looked through: while any text holds the nonce, the next one is derived,
    with a counter in the hash. Who does not know `key` cannot write the closing tag.

    Args:
        key: the run's secret.
        texts: every text that will be fenced with this nonce, the prompt first.
    """
    secret = hashlib.sha256(key.encode("utf-8", "surrogatepass") if isinstance(key, str) else key).digest()
    prompt = texts[0].encode("utf-8", "surrogatepass") if texts else b""
    counter = 0
    while True:
        digest = hashlib.blake2s(counter.to_bytes(8, "big") + prompt, key=secret)
        nonce = digest.hexdigest()[:_NONCE_DIGITS]
        if not any(nonce in text.lower() for text in texts):
            return nonce
        counter += 1


def fence(label: str, text: str, nonce: str) -> str:
    """The text as a block of its own: `<label-nonce>`, the text, `</label-nonce>`, each tag alone on its line.

    What a tokenizer could read as a control token (`<|im_end|>`, `[INST]`, ...) gets an invisible word joiner
    (U+2060) inside; everything else stands as it is. `unfence` gives back the text unchanged.

    Raises ConfigError when the label or nonce has other characters than letters and digits, or when the text holds
    the nonce (derive it with `make_nonce` from every text).
    """
    opening, closing = _tags(label, nonce)
    if nonce.lower() in text.lower():
        raise ConfigError(
            f"the text to be fenced as {label!r} holds the nonce", hint="pass every fenced text to make_nonce"
        )
    return f"{opening}\n{_CONTROL.sub(_join, text)}\n{closing}"


def unfence(text: str, label: str, nonce: str) -> str:
    """The text that `fence` put into a prompt, unchanged.

    Raises ConfigError when `text` does not hold exactly one such block.
    """
    opening, closing = _tags(label, nonce)
    if text.count(opening) != 1 or text.count(closing) != 1:
        raise ConfigError(f"expected one block {opening} ... {closing}, found {text.count(opening)}")
    start = text.index(opening) + len(opening) + 1
    return _JOINED.sub(r"\1\2", text[start : text.index(closing) - 1])


def _tags(label: str, nonce: str) -> tuple[str, str]:
    if not _LABEL.match(label) or not _NONCE.match(nonce):
        raise ConfigError(
            f"cannot make a fence of label {label!r} and nonce {nonce!r}", hint="use letters and digits"
        )
    return f"<{label}-{nonce}>", f"</{label}-{nonce}>"


def _join(match: re.Match[str]) -> str:
    return match.group(0) + _JOINER
