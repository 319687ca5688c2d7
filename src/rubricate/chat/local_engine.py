"""Answers requests on a loaded model, in one thread: batches unrelated prompts, computes shared prefixes once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from rubricate.chat.base import ChatRequest
from rubricate.chat.local_forward import Batch, prefill
from rubricate.chat.local_host import LocalOptions, Work
from rubricate.chat.local_load import load_model, pick_device, pick_dtype
from rubricate.chat.local_path import Held, Path, assemble, sharing_is_exact, telling
from rubricate.chat.local_room import Room
from rubricate.chat.local_rows import Row, check_request, take
from rubricate.chat.local_source import Source
from rubricate.chat.local_store import PrefixStore
from rubricate.chat.local_text import Codec
from rubricate.chat.local_torch import CausalModel, ChatTokenizer, Network
from rubricate.chat.local_tree import Node, Pass, build_tree, passes, paying, walk
from rubricate.errors import ChatError, RequestError
from rubricate.narrow import as_array

__all__ = ["Engine", "open_engine"]

_KNOWN = 0.2  # a prompt goes behind a kept prefix where that spares this part of it
_LEAST = 64  # tokens of a prompt that is worth keeping
_FULL_PASS = 256  # tokens from which a bigger pass is hardly faster per token, so that padding is pure loss


class Engine:
    """A model, its tokenizer, and how they answer.

    Args:
        network: the model.
        codec: its chat template and tokenizer.
        max_batch_tokens: bound on rows x (prompt + answer) tokens of one batch; a longer request runs alone.
        max_cache_bytes: bound on the memory for keys and values, half for work and half for kept prefixes.

    Attributes:
        sharing: whether common prefixes are computed once; None to try, when it first matters, whether this model
            allows it.
    """

    def __init__(
        self, network: Network, codec: Codec, *, max_batch_tokens: int, max_cache_bytes: int = 1 << 30
    ) -> None:
        self.network = network
        self.codec = codec
        self.store = PrefixStore(max_cache_bytes // 2)
        self.room = Room(network, max_cache_bytes - max_cache_bytes // 2, max_batch_tokens)
        self.sharing: bool | None = None

    @property
    def context(self) -> int | None:
        """Context length in tokens, None where there is no limit."""
        return self.codec.context

    @torch.inference_mode()
    def run(self, works: Sequence[Work]) -> None:
        """Do all the work and deliver every answer as soon as it is complete.

        What prompts begin with alike is computed once, whichever work they belong to; other prompts are pooled
        into batches.
        """
        pending = [(work, [self._row(request, work) for request in work.requests]) for work in works]
        live = [row for _, rows in pending for row in rows if not row.done]
        for _ in self._steps(live):
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

    def _steps(self, rows: Sequence[Row]) -> Iterator[None]:
        """Run rows, a pass or a batch at each step."""
        prompts = [row.prompt for row in rows]
        subtrees: list[Node] = []
        alone = list(range(len(rows)))
        if rows and self._may_share():
            subtrees, alone = paying(build_tree(prompts))
            if subtrees and not self._exact(prompts):
                subtrees, alone = [], list(range(len(rows)))
        for root in subtrees:
            work = passes(root, tokens=self.room.tokens(_longest(root, prompts)), rows=self.room.rows)
            yield from self._tree(work, rows)
        pool: list[Row] = []
        for place in alone:
            if not self._keeps(prompts[place], len(rows)):
                pool.append(rows[place])
                continue
            yield from self._tree(iter([Pass(place, len(prompts[place]) - 1, place, (place,), ())]), rows)
        yield from self._batches(pool)

    def _tree(self, work: Iterator[Pass], rows: Sequence[Row]) -> Iterator[None]:
        """Run passes over rows that share prefixes. Rows that generate do so together, whatever they share."""
        path = Path(self.network, [row.prompt for row in rows], room=self.room, store=self.store)
        waiting: list[tuple[Row, Held]] = []
        for step in work:
            if all(rows[number].done for number in step.prompts()):
                continue
            numbers, logprobs = path.run(step)
            for number in numbers:
                rows[number].cached = len(rows[number].prompt) - path.charged[number]
            for place in take([rows[number] for number in numbers], logprobs):
                row = rows[numbers[place]]
                if waiting and not self._room_for([other for other, _ in waiting], row):
                    self._go_on(waiting)
                waiting.append((row, path.hold(numbers[place])))
            yield
        self._go_on(waiting)
        yield

    def _go_on(self, waiting: list[tuple[Row, Held]]) -> None:
        """Generate the rest of these answers in one batch. Empties the list."""
        live = [(row, held) for row, held in waiting if not row.done]
        waiting.clear()
        if live:
            self._generate([row for row, _ in live], assemble(self.network, [held for _, held in live]))

    def _batches(self, rows: Sequence[Row]) -> Iterator[None]:
        """Run rows in plain batches, one batch at each step."""
        for chunk in self._chunks([row for row in rows if not row.done]):
            chunk = [row for row in chunk if not row.done]
            if chunk:
                batch, logprobs = prefill(self.network, [row.prompt for row in chunk])
                self._generate(_narrow(chunk, take(chunk, logprobs), batch), batch)
            yield

    def _generate(self, rows: list[Row], batch: Batch) -> None:
        """Continue until every row is done. Rows that are done leave the batch."""
        while any(not row.done for row in rows):
            logprobs = batch.advance([row.last for row in rows])
            rows = _narrow(rows, take(rows, logprobs), batch)

    def _may_share(self) -> bool:
        return self.network.free_mask and self.sharing is not False

    def _exact(self, prompts: Sequence[Sequence[int]]) -> bool:
        if self.sharing is None:
            sample = next(filter(telling, prompts), None)
            if sample is None:  # nothing to tell it by; a later prompt will
                return False
            self.sharing = sharing_is_exact(self.network, sample)
        return self.sharing

    def _keeps(self, prompt: Sequence[int], company: int) -> bool:
        """Whether a prompt that shares little with others in the queue runs by itself: behind a kept prefix, to be
        kept, or in steps because it is long."""
        if len(prompt) < _LEAST or not self._may_share():
            return False
        known = self.store.match(prompt[:-1]) >= _KNOWN * len(prompt)
        long = len(prompt) > self.room.batch_tokens or len(prompt) > 4 * self.room.tokens(len(prompt))
        return (known or long or company == 1) and self._exact([prompt])

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
        if not self._room_for(chunk, row) or _generates(chunk[0]) != _generates(row):
            return False
        # a batch that generates reads all weights at every token: there company is worth some padding
        full = len(chunk) * longest >= _FULL_PASS
        return _generates(row) or not full or len(row.prompt) >= 0.75 * longest

    def _room_for(self, batch: Sequence[Row], row: Row) -> bool:
        """Whether a batch with one more row stays within the bound on tokens."""
        longest = max(len(other.prompt) for other in (*batch, row))
        answer = max(other.request.max_tokens for other in (*batch, row))
        return (len(batch) + 1) * (longest + answer) <= self.room.batch_tokens


def open_engine(source: Source, options: LocalOptions, name: str) -> Engine:
    """Load the model and make it ready to answer. Call it in the thread that will run it.

    Raises ConfigError for weights that cannot be loaded or have no chat template, MissingExtraError.
    """
    if options.threads is not None:
        torch.set_num_threads(options.threads)  # of this thread
    device = pick_device(options.device)
    model, tokenizer = load_model(source, device=device, dtype=pick_dtype(options.dtype, device))
    codec = Codec(tokenizer, name=name, context=_context(model.config), stops=_stops(model, tokenizer))
    return Engine(
        Network(model),
        codec,
        max_batch_tokens=options.max_batch_tokens,
        max_cache_bytes=options.max_cache_bytes,
    )


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


def _longest(root: Node, prompts: Sequence[Sequence[int]]) -> int:
    return max(len(prompts[row]) for node in walk(root) for row in node.rows)
