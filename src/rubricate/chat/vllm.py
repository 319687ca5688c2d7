"""The vllm back end: vLLM's offline engine, started and driven by this process, without a server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, replace
from pathlib import Path

from rubricate.chat.base import Capabilities, ChatModel, ChatRequest, Completion
from rubricate.chat.local_source import gguf_copy, read_context, resolve, weights_identity
from rubricate.chat.timing import remaining
from rubricate.chat.vllm_host import VllmHost, host_for
from rubricate.chat.vllm_library import VllmOptions, require_vllm
from rubricate.errors import ChatError, ConfigError, DeadlineError
from rubricate.narrow import as_number, as_object
from rubricate.types import fingerprint

__all__ = ["VllmModel", "VllmOptions", "load_vllm", "model_folder"]

_DTYPES = ("auto", "bfloat16", "float16", "float32")


def load_vllm(
    spec: str,
    *,
    adapter: str | None = None,
    dtype: str = "auto",
    max_model_len: int | None = None,
    gpu_memory: float = 0.9,
    tensor_parallel: int = 1,
    eager: bool = False,
    engine: Mapping[str, object] | None = None,
) -> VllmModel:
    """A model run by vLLM, without a server. Nothing is loaded before its first call, and nothing is downloaded.

    Args:
        spec: a Hugging Face model directory, a hub id that is in the local hub cache, or `smollm2`.
        adapter: directory of a LoRA adapter for it.
        dtype, max_model_len, gpu_memory, tensor_parallel, eager, engine: see VllmOptions.

    Raises ConfigError for weights or options that cannot be, MissingExtraError where vLLM is not installed.
    """
    arguments = as_object(engine or {})
    if arguments is None:
        raise ConfigError("engine must be a mapping of vLLM's EngineArgs", hint='such as {"quantization": "fp8"}')
    options = VllmOptions(adapter, dtype, max_model_len, gpu_memory, tensor_parallel, eager, dict(arguments))
    return VllmModel(spec, options)


def model_folder(spec: str) -> Path:
    """The model directory that `spec` names. A GGUF file stands for its converted copy, which is made if need be.

    Raises ConfigError where there is nothing, MissingExtraError where a package for the conversion is missing.
    """
    source = resolve(spec)
    if not source.gguf:
        return source.path
    copy = gguf_copy(source.path)
    if not copy.is_dir():
        import torch

        from rubricate.chat.local_load import load_model

        load_model(source, device="cpu", dtype=torch.float32)
    if not copy.is_dir():
        raise ConfigError(f"{spec!r} could not be converted to {copy}", hint="name a model directory")
    return copy


class VllmModel(ChatModel):
    """A chat model run by vLLM's offline engine; make it with `load_vllm`.

    Requests join those in progress at the engine's next step. vLLM computes what requests begin with once, also
    where they arrive together, so nothing is sent ahead to warm its cache. Objects with the same weights and
    options share an engine. A call that is cancelled, or whose deadline passes, is given up at the next step.

    vLLM starts its engine in a child process, as its own `LLM` does: a script that uses this needs the usual
    `if __name__ == "__main__":`. With VLLM_ENABLE_V1_MULTIPROCESSING=0 the engine runs in a thread of this process.

    Log-probabilities are the model's own, before temperature and top_p; `top_logprobs` may be as large as the
    vocabulary. `json_schema` constrains decoding. Of `extra`, `chat_template_kwargs` reaches the chat template, and
    all else vLLM's SamplingParams (`min_tokens`, `top_k`, `repetition_penalty`). Special tokens written in messages
    are broken by a space, so that no text can end a turn.

    Args:
        spec: as in `load_vllm`.
        options: how to load and run it.
        name: what to call it; by default `vllm:` and the spec, and the adapter's folder where there is one.

    Attributes:
        source: where its files are; vLLM itself is given the converted copy of a GGUF file.
    """

    def __init__(self, spec: str, options: VllmOptions | None = None, *, name: str = "") -> None:
        options = options or VllmOptions()
        _check(options)
        require_vllm()
        found = resolve(spec, options.adapter)
        # absolute, so that a pickled model means the same in another working directory
        self.options = replace(options, adapter=str(found.adapter)) if found.adapter else options
        self.name = name or f"vllm:{spec}" + (f"+{found.adapter.name}" if found.adapter else "")
        self.source = found
        self._source = replace(found, path=model_folder(spec))
        self._host: VllmHost | None = None
        self._fingerprint = ""

    def __repr__(self) -> str:
        return f"VllmModel({self.name!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (str(self._source.path), self.options, self.name)

    @property
    def fingerprint(self) -> str:
        """Hash of weights, tokenizer, adapter, dtype and engine arguments; the same wherever the files lie."""
        if not self._fingerprint:
            kept = {name: value for name, value in asdict(self.options).items() if name in ("eager", "engine")}
            identity = {"files": weights_identity(self._source), "dtype": self.options.resolved_dtype, **kept}
            self._fingerprint = fingerprint({"backend": "vllm", **identity})
        return self._fingerprint

    @property
    def capabilities(self) -> Capabilities:
        host = self._host.context if self._host is not None else None
        context = host or self.options.max_model_len or read_context(self._source.path)
        return Capabilities(logprobs=True, json_schema=True, prefill=True, context=context)

    async def complete(self, request: ChatRequest) -> Completion:
        """Answer one request.

        Raises RequestError for bad parameters, ContextOverflowError when prompt and answer do not fit the context,
        DeadlineError, ConfigError when vLLM cannot run the model, ChatError when the engine fails.
        """
        (answer,) = await self.complete_many([request])
        if isinstance(answer, ChatError):
            raise answer
        return answer

    async def complete_many(self, requests: Sequence[ChatRequest]) -> list[Completion | ChatError]:
        """Answer requests together. Raises ConfigError when vLLM cannot run the model."""
        futures = self._joined().submit(requests) if requests else []
        # every one of them is awaited before an error of all is raised, so that none goes unretrieved
        answers = await asyncio.gather(*(self._settle(future) for future in futures), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, ChatError):
                raise answer
        return [answer for answer in answers if isinstance(answer, Completion | ChatError)]

    async def aclose(self) -> None:
        """Stop the engine, unless another object uses it. The next call starts it again."""
        host, self._host = self._host, None
        freed = host.leave(self) if host is not None and host.pid == os.getpid() else None
        if freed is not None:
            await asyncio.wrap_future(freed)

    async def _settle(self, future: Future[Completion]) -> Completion:
        left = remaining()
        try:
            async with asyncio.timeout(left):
                return await asyncio.wrap_future(future)
        except DeadlineError:
            raise
        except TimeoutError:
            raise DeadlineError("the deadline passed before vLLM answered", provider=self.name) from None

    def _joined(self) -> VllmHost:
        if self._host is None or self._host.pid != os.getpid():
            self._host = host_for(self._source, self.options, self.name, self)
        return self._host


def _rebuild(spec: str, options: VllmOptions, name: str) -> VllmModel:
    return VllmModel(spec, options, name=name)


def _check(options: VllmOptions) -> None:
    """Options may come out of a model's name, where nothing has checked their types."""
    if options.dtype not in _DTYPES:
        raise ConfigError(f"there is no dtype {options.dtype!r}", hint=f"choose one of {', '.join(_DTYPES)}")
    for name in ("max_model_len", "tensor_parallel"):
        value: object = getattr(options, name)
        wrong = isinstance(value, bool) or not isinstance(value, int) or value < 1
        if wrong and not (name == "max_model_len" and value is None):
            raise ConfigError(f"{name} must be a whole number of at least 1, not {value!r}")
    part = as_number(options.gpu_memory)
    if part is None or not 0.0 < part <= 1.0:
        raise ConfigError(f"gpu_memory must be above 0 and at most 1, not {options.gpu_memory!r}")
    if not isinstance(vars(options)["eager"], bool):
        raise ConfigError(f"eager must be true or false, not {options.eager!r}")
    if options.adapter is not None and not isinstance(vars(options)["adapter"], str):
        raise ConfigError(f"adapter must be text, not {options.adapter!r}")
