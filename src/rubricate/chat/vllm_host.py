"""An engine of vLLM and the one thread that drives it, shared by all that ask for the same model."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from dataclasses import dataclass, field

from rubricate.chat.base import ChatRequest, Completion, Finish, TokenLogprob
from rubricate.chat.local_rows import check_request
from rubricate.chat.local_source import Source
from rubricate.chat.local_text import Codec
from rubricate.chat.vllm_library import Generated, Output, TokenScore, VllmEngine, VllmOptions, open_engine
from rubricate.errors import ChatError, RubricateError
from rubricate.types import Usage

__all__ = ["VllmHost", "host_for"]

_FINISH = {"stop": Finish.STOP, "length": Finish.LENGTH}
_serial = itertools.count()


@dataclass(frozen=True, eq=False)
class _Ask:
    """A request on its way. Whoever waits for it cancels the future to give it up."""

    request: ChatRequest
    future: Future[Completion] = field(default_factory=Future[Completion])
    key: str = field(default_factory=lambda: f"rubricate-{next(_serial)}")

    def answer(self, completion: Completion) -> None:
        with contextlib.suppress(InvalidStateError):  # given up at this moment
            self.future.set_result(completion)

    def fail(self, error: Exception) -> None:
        with contextlib.suppress(InvalidStateError):
            self.future.set_exception(error)


class VllmHost:
    """Takes requests from any thread and event loop, and answers them with one engine in one thread.

    The engine is started for the first request. Requests join those in progress at the next step.

    Attributes:
        pid: the process that the thread belongs to.
        context: context length in tokens, None until the engine has started.
        users: the models that use it.
        closed: its last user has left; who comes later needs another one.
    """

    def __init__(self, source: Source, options: VllmOptions, name: str) -> None:
        self.pid = os.getpid()
        self.context: int | None = None
        self.users: weakref.WeakSet[object] = weakref.WeakSet()
        self.closed = False
        self._source = source
        self._options = options
        self._name = name
        self._lock = threading.Lock()
        self._queue: deque[_Ask] = deque()
        self._busy = False
        self._engine: VllmEngine | None = None
        self._executor: ThreadPoolExecutor | None = None

    def submit(self, requests: Sequence[ChatRequest]) -> list[Future[Completion]]:
        """Queue requests, all of which join the same step. A cancelled future is given up at the next one."""
        asks = [_Ask(request) for request in requests]
        with self._lock:
            self._queue += asks
            if not self._busy:
                self._start()
        return [ask.future for ask in asks]

    def _start(self) -> None:
        self._busy = True
        try:
            self._thread().submit(self._serve)
        except RuntimeError as error:  # no thread can be started, or the interpreter is about to exit
            self._busy, self._executor = False, None
            for ask in self._queue:
                ask.fail(_told(error, self._name))
            self._queue.clear()

    def leave(self, user: object) -> Future[None] | None:
        """`user` is done with the model. The engine is closed, after what is queued, when no user is left."""
        with _hosts_lock:
            self.users.discard(user)
            if self.users:
                return None
            self.closed = True
        with self._lock:
            executor, self._executor = self._executor, None
        if executor is None:
            return None
        freed = executor.submit(self._close)
        executor.shutdown(wait=False)
        return freed

    def _thread(self) -> ThreadPoolExecutor:
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, thread_name_prefix="rubricate-vllm")
        return self._executor

    def _serve(self) -> None:
        """Step until nothing is queued and nothing in progress."""
        live: dict[str, _Ask] = {}
        while True:
            with self._lock:
                new = [ask for ask in self._queue if not ask.future.cancelled()]
                self._queue.clear()
                if not new and not live:
                    self._busy = False
                    return
            try:
                self._advance(live, new)
            except Exception as error:
                # after an error of the engine nothing can be said about its state: the next call starts it anew
                with contextlib.suppress(Exception):
                    self._close()
                for ask in (*live.values(), *new):
                    ask.fail(_told(error, self._name))
                live.clear()

    def _advance(self, live: dict[str, _Ask], new: Sequence[_Ask]) -> None:
        engine = self._ready()
        for ask in new:
            try:
                check_request(ask.request, self._name)
                engine.add(ask.key, ask.request)
            except ChatError as error:
                ask.fail(error)
            else:
                live[ask.key] = ask
        dropped = [key for key, ask in live.items() if ask.future.cancelled()]
        engine.abort(dropped)
        for key in dropped:
            del live[key]
        for output in engine.step() if live else ():
            ask = live.pop(output.request_id, None)
            if ask is None:
                continue
            try:
                ask.answer(_completion(output, ask.request, engine.codec))
            except Exception as error:  # what cannot be read fails by itself: the engine and the others go on
                ask.fail(_told(error, self._name))

    def _ready(self) -> VllmEngine:
        if self._engine is None:
            self._engine = open_engine(self._source, self._options, self._name)
            self.context = self._engine.context
        return self._engine

    def _close(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()


def _told(error: Exception, name: str) -> Exception:
    """Our own errors say what to do; others become a ChatError, so that a judge can record them."""
    if isinstance(error, RubricateError):
        return error
    wrapped = ChatError(f"vLLM failed: {error!r}", provider=name)
    wrapped.__cause__ = error
    return wrapped


def _completion(output: Output, request: ChatRequest, codec: Codec) -> Completion:
    answer = output.outputs[0]
    usage = Usage(
        calls=1,
        prompt_tokens=len(output.prompt_token_ids or ()),
        completion_tokens=len(answer.token_ids),
        cached_tokens=output.num_cached_tokens or 0,
    )
    finish = _FINISH.get(answer.finish_reason or "", Finish.OTHER)
    return Completion(answer.text, finish, usage, _logprobs(answer, request, codec))


def _logprobs(answer: Generated, request: ChatRequest, codec: Codec) -> tuple[TokenLogprob, ...] | None:
    if request.top_logprobs is None or answer.logprobs is None:
        return None
    with_top = request.top_logprobs > 0
    places = zip(answer.token_ids, answer.logprobs, strict=False)
    return tuple(_entry(token, scores, with_top, codec) for token, scores in places)


def _entry(token: int, scores: Mapping[int, TokenScore], with_top: bool, codec: Codec) -> TokenLogprob:
    """A token and its alternatives, likeliest first; the generated one is among them, whatever its rank."""
    ranked = sorted(((other, score.logprob) for other, score in scores.items()), key=lambda pair: -pair[1])
    top = tuple((codec.piece(other), value) for other, value in ranked) if with_top else ()
    return TokenLogprob(codec.piece(token), scores[token].logprob, top)


_hosts: weakref.WeakValueDictionary[tuple[Source, str], VllmHost] = weakref.WeakValueDictionary()
_hosts_lock = threading.Lock()


def _after_fork() -> None:
    # a forked child has the parent's hosts without their threads, and perhaps the lock in another thread's hands
    global _hosts, _hosts_lock
    _hosts = weakref.WeakValueDictionary()
    _hosts_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def host_for(source: Source, options: VllmOptions, name: str, user: object) -> VllmHost:
    """The host of these weights and options in this process, made where there is none."""
    key = (source, repr(options))
    with _hosts_lock:
        host = _hosts.get(key)
        if host is None or host.closed or host.pid != os.getpid():  # a forked child has no such thread
            host = _hosts[key] = VllmHost(source, options, name)
        host.users.add(user)
        return host
