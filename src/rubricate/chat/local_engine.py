"""Answers requests on a loaded model, in one thread: batches unrelated prompts, computes a shared prefix once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from rubricate.chat.base import ChatRequest
from rubricate.chat.local_forward import Batch, Prefix, common_prefix, prefill, sharing_is_exact
from rubricate.chat.local_host import LocalOptions, Work
from rubricate.chat.local_load import load_model, pick_device, pick_dtype
from rubricate.chat.local_rows import Row, check_request, take
from rubricate.chat.local_source import Source
from rubricate.chat.local_text import Codec
from rubricate.chat.local_torch import CausalModel, ChatTokenizer, Network
from rubricate.errors import ChatError, RequestError
from rubricate.narrow import as_array

__all__ = ["Engine", "open_engine"]

_SHARED_SAVES = 0.2  # sharing must spare this part of all prompt tokens, else plain batches are as good
_LEAST_SHARED = 8  # tokens
_PACKED_TOKENS = 768  # suffix tokens in one pass: enough to keep a CPU busy; attention grows with their square
_FULL_PASS = 256  # tokens from which a bigger pass is hardly faster per token, so that padding is pure loss


class Engine:
    """A model, its tokenizer, and how they answer.

    Args:
        network: the model.
        codec: its chat template and tokenizer.
        max_batch_tokens: bound on rows x (prompt + answer) tokens of one batch; a longer request runs alone.
    """

    def __init__(self, network: Network, codec: Codec, *, max_batch_tokens: int) -> None:
        self.network = network
        self.codec = codec
        self._bound = max_batch_tokens
        self._sharing: bool | None = None

    @property
    def context(self) -> int | None:
        """Context length in tokens, None where there is no limit."""
        return self.codec.context

    @torch.inference_mode()
    def run(self, works: Sequence[Work]) -> None:
        """Do all the work and deliver every answer as soon as it is complete.

        Work with a shared prefix is done apart; everything else is pooled into batches.
        """
        pending = [(work, [self._row(request, work) for request in work.requests]) for work in works]
        for work, rows in pending:
            if work.shared:
                self._shared(rows)
        pool = [row for work, rows in pending if not work.shared for row in rows]
        for _ in self._batches(pool):
            pending = [(work, rows) for work, rows in pending if not _delivered(work, rows)]
        for work, rows in pending:
            work.deliver([row.result() for row in rows])

    def _row(self, request: ChatRequest, work: Work) -> Row:
        row = Row(request, self.codec, work.wanted)
        try:
            check_request(request, self.codec.name)
            row.prompt = self.codec.encode(request)
        except ChatError as error:
            row.error = error
        except Exception as error:  # what a template or tokenizer chokes on must not take the batch with it
            row.error = RequestError(f"the messages cannot be read: {error!r}", provider=self.codec.name)
            row.error.__cause__ = error
        return row

    def _batches(self, rows: Sequence[Row]) -> Iterator[None]:
        """Run rows in plain batches, one batch at each step."""
        for chunk in self._chunks([row for row in rows if not row.done]):
            chunk = [row for row in chunk if not row.done]
            if chunk:
                batch, logprobs = prefill(self.network, [row.prompt for row in chunk])
                self._generate(_narrow(chunk, take(chunk, logprobs), batch), batch)
            yield

    def _shared(self, rows: Sequence[Row]) -> None:
        """Run rows behind their common prefix, which is computed once where that pays."""
        live = [row for row in rows if not row.done]
        cut = common_prefix([row.prompt for row in live]) if len(live) > 1 else 0
        if not self._pays(live, cut):
            for _ in self._batches(live):
                pass
            return
        prefix = Prefix(self.network, live[0].prompt[:cut])
        for row in live[1:]:
            row.cached = cut
        for chunk in self._packs(live, cut):
            chunk = [row for row in chunk if not row.done]
            if chunk:
                going = take(chunk, prefix.run([row.prompt[cut:] for row in chunk]))
                if going:
                    self._generate([chunk[place] for place in going], prefix.unpack(going))

    def _generate(self, rows: list[Row], batch: Batch) -> None:
        """Continue until every row is done. Rows that are done leave the batch."""
        while any(not row.done for row in rows):
            logprobs = batch.advance([row.last for row in rows])
            rows = _narrow(rows, take(rows, logprobs), batch)

    def _pays(self, rows: Sequence[Row], cut: int) -> bool:
        if cut < _LEAST_SHARED or cut * (len(rows) - 1) < _SHARED_SAVES * sum(len(row.prompt) for row in rows):
            return False
        if self._sharing is None:
            self._sharing = sharing_is_exact(self.network, rows[0].prompt)
        return self._sharing

    def _chunks(self, rows: Sequence[Row]) -> Iterator[list[Row]]:
        """Rows of similar length, at most `max_batch_tokens` in a batch; those that only score apart."""
        chunk: list[Row] = []
        for row in sorted(rows, key=_kind_and_length, reverse=True):
            if chunk and not self._fits(chunk, row):
                yield chunk
                chunk = []
            chunk.append(row)
        if chunk:
            yield chunk

    def _fits(self, chunk: Sequence[Row], row: Row) -> bool:
        longest = len(chunk[0].prompt)
        answer = max(other.request.max_tokens for other in (*chunk, row))
        if (len(chunk) + 1) * (longest + answer) > self._bound or _generates(chunk[0]) != _generates(row):
            return False
        # a batch that generates reads all weights at every token: there company is worth some padding
        full = len(chunk) * longest >= _FULL_PASS
        return _generates(row) or not full or len(row.prompt) >= 0.75 * longest

    def _packs(self, rows: Sequence[Row], cut: int) -> Iterator[list[Row]]:
        """Rows whose suffixes go into one pass, and whose unpacked prompts and answers stay within the bound."""
        chunk: list[Row] = []
        packed = unpacked = 0
        for row in rows:
            own = len(row.prompt) - cut
            whole = len(row.prompt) + row.request.max_tokens if _generates(row) else 0
            if chunk and (packed + own > min(_PACKED_TOKENS, self._bound) or unpacked + whole > self._bound):
                yield chunk
                chunk, packed, unpacked = [], 0, 0
            chunk.append(row)
            packed += own
            unpacked += whole
        if chunk:
            yield chunk


def open_engine(source: Source, options: LocalOptions, name: str) -> Engine:
    """Load the model and make it ready to answer. Call it in the thread that will run it.

    Raises ConfigError for weights that cannot be loaded or have no chat template, MissingExtraError.
    """
    if options.threads is not None:
        torch.set_num_threads(options.threads)  # of this thread
    device = pick_device(options.device)
    model, tokenizer = load_model(source, device=device, dtype=pick_dtype(options.dtype, device))
    codec = Codec(tokenizer, name=name, context=_context(model.config), stops=_stops(model, tokenizer))
    return Engine(Network(model), codec, max_batch_tokens=options.max_batch_tokens)


def _context(config: object) -> int | None:
    for holder in (config, getattr(config, "text_config", None)):
        length = getattr(holder, "max_position_embeddings", None)
        if isinstance(length, int) and length > 0:
            return length
    return None


def _stops(model: CausalModel, tokenizer: ChatTokenizer) -> frozenset[int]:
    """Tokens that end an answer: the generation settings name one or several, the tokenizer one."""
    named: object = getattr(model.generation_config, "eos_token_id", None)
    several = as_array(named) or (named,)
    return frozenset(token for token in (*several, tokenizer.eos_token_id) if isinstance(token, int))


def _generates(row: Row) -> bool:
    return row.request.max_tokens > 1


def _kind_and_length(row: Row) -> tuple[bool, int]:
    return _generates(row), len(row.prompt)


def _narrow(rows: list[Row], going: Sequence[int], batch: Batch) -> list[Row]:
    """The rows that go on; those that are done leave the batch, where its cache allows that."""
    if len(going) == len(rows) or not batch.droppable:
        return rows
    if going:
        batch.keep(going)
    return [rows[place] for place in going]


def _delivered(work: Work, rows: Sequence[Row]) -> bool:
    """Deliver answers that are complete, or that nobody wants; whether that was so."""
    if not all(row.done for row in rows):
        return False
    work.deliver([row.result() for row in rows])
    return True
