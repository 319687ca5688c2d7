"""The OpenAI embeddings format on the wire: what a server's reply must hold to be taken for vectors."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rubricate.chat.base import Completion
from rubricate.chat.wire import http_error
from rubricate.embed.base import Vectors
from rubricate.errors import ServerError
from rubricate.narrow import as_array, as_number, as_object
from rubricate.types import Usage

__all__ = ["Embedded", "parse_embeddings"]


@dataclass(frozen=True, slots=True)
class Embedded(Completion):
    """The vectors of one request, as the limiter of chat models handles an answer.

    Attributes:
        vectors: float32 of shape (n, d), in the order of the request's texts, as the server gave them.
    """

    vectors: Vectors = field(default_factory=lambda: np.empty((0, 0), dtype=np.float32))


def parse_embeddings(record: object, count: int, dimensions: int | None, provider: str) -> Embedded:
    """The vectors in a reply with status 200, put in order by their `index`.

    Args:
        count: number of texts sent.
        dimensions: what every vector must have, None where it is not known yet.

    Raises ServerError: retryable where the reply is not one list of `count` vectors with the indices 0 to
    count - 1, as a gateway that mixes replies up may give; not retryable where vectors differ in dimension or are
    not finite, which a model does alike every time.
    """
    reply = as_object(record)
    if reply is None:
        raise _broken("is not a JSON object", provider)
    data = as_array(reply.get("data"))
    if data is None:
        raise _no_data(reply, provider)
    if len(data) != count:
        raise _broken(f"has {len(data)} vectors for {count} texts", provider)
    rows = dict[int, Vectors]()
    for place, item in enumerate(data):
        entry = as_object(item) or {}
        index = entry.get("index")
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < count:
            raise _broken(f"has {index!r} for the index of vector {place}, of {count}", provider)
        if index in rows:
            raise _broken(f"has two vectors of index {index}", provider)
        rows[index] = _vector(entry.get("embedding"), index, provider)
    vectors = _stacked([rows[index] for index in range(count)], dimensions, provider)
    usage = as_object(reply.get("usage")) or {}
    tokens = as_number(usage.get("prompt_tokens"))
    return Embedded("", usage=Usage(1, int(tokens) if tokens is not None and tokens > 0 else 0), vectors=vectors)


def _no_data(reply: Mapping[str, object], provider: str) -> Exception:
    """Some gateways send an error with status 200."""
    if not reply.get("error"):
        return _broken("has no list `data`", provider)
    code = as_number((as_object(reply.get("error")) or {}).get("code"))
    status = int(code) if code is not None and 400 <= code < 600 else 502
    return http_error(status, {}, reply, provider)


def _vector(value: object, index: int, provider: str) -> Vectors:
    """One embedding: a list of numbers, or the base64 text of little-endian float32."""
    if isinstance(value, str):
        try:
            raw = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raise _broken(f"has a vector of index {index} that is not base64", provider) from None
        if len(raw) % 4:
            raise _broken(f"has a vector of index {index} of {len(raw)} bytes, which is not float32", provider)
        return np.frombuffer(raw, dtype="<f4").astype(np.float32)
    numbers = as_array(value)
    if numbers is None:
        raise _broken(f"has no vector at index {index}", provider)
    # A server that overflows writes null, or NaN outside of what JSON allows.
    wrong = next((number for number in numbers if type(number) not in (int, float)), None)
    if wrong is not None or None in numbers:
        raise _unusable(f"has {wrong!r} in the vector of index {index}", provider)
    with np.errstate(over="ignore"):
        return np.asarray(numbers, dtype=np.float64).astype(np.float32)


def _stacked(rows: Sequence[Vectors], dimensions: int | None, provider: str) -> Vectors:
    expected = dimensions or len(rows[0])
    for index, row in enumerate(rows):
        if len(row) != expected or not expected:
            detail = f"has {len(row)} dimensions at index {index}, where {expected} are expected"
            hint = "one model gives vectors of one length: does the address lead to several models?"
            raise _unusable(detail, provider, hint)
        if not np.isfinite(row).all():
            raise _unusable(f"has a number that is not finite in the vector of index {index}", provider)
    return np.stack(rows)


def _broken(what: str, provider: str) -> ServerError:
    return ServerError(f"the server's reply {what}", provider=provider, status=200)


def _unusable(what: str, provider: str, hint: str = "") -> ServerError:
    return ServerError(f"the server's reply {what}", provider=provider, status=200, hint=hint, retryable=False)
