"""The small typed surface of vLLM's offline engine that the `vllm` back end uses. Nothing is imported before it is
called."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, cast

from rubricate.chat.base import ChatRequest
from rubricate.chat.local_source import Source
from rubricate.chat.local_text import Codec
from rubricate.chat.local_torch import ChatTokenizer
from rubricate.errors import ConfigError, MissingExtraError, RequestError
from rubricate.narrow import as_array, as_number, as_object

__all__ = ["Generated", "Output", "TokenScore", "VllmEngine", "VllmOptions", "open_engine", "require_vllm"]

_LORA_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)  # what vLLM's max_lora_rank may be


@dataclass(frozen=True)
class VllmOptions:
    """How a model is loaded and run.

    Attributes:
        adapter: directory of a LoRA adapter, None for the base model as it is.
        dtype: `bfloat16`, `float16`, `float32`, or `auto`, which is bfloat16.
        max_model_len: context in tokens, None for the model's own.
        gpu_memory: part of the GPU's memory that vLLM may take, above 0 and at most 1.
        tensor_parallel: GPUs that share one model.
        eager: no compilation and no CUDA graphs: starts sooner, runs slower on a GPU.
        engine: further arguments of vLLM's EngineArgs, as they are.
    """

    adapter: str | None = None
    dtype: str = "auto"
    max_model_len: int | None = None
    gpu_memory: float = 0.9
    tensor_parallel: int = 1
    eager: bool = False
    engine: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def resolved_dtype(self) -> str:
        """`auto` is bfloat16 everywhere, so that a fingerprint means the same on every machine."""
        return "bfloat16" if self.dtype == "auto" else self.dtype


class TokenScore(Protocol):
    """vLLM's Logprob."""

    logprob: float


class Generated(Protocol):
    """vLLM's CompletionOutput: one answer."""

    text: str
    token_ids: Sequence[int]
    logprobs: Sequence[Mapping[int, TokenScore]] | None
    finish_reason: str | None


class Output(Protocol):
    """vLLM's RequestOutput."""

    request_id: str
    prompt_token_ids: Sequence[int] | None
    num_cached_tokens: int | None
    outputs: Sequence[Generated]
    finished: bool


class _ModelConfig(Protocol):
    max_model_len: int

    def get_vocab_size(self) -> int: ...


class _VllmConfig(Protocol):
    model_config: _ModelConfig


class _Core(Protocol):
    def shutdown(self) -> None: ...


class _LLMEngine(Protocol):
    vllm_config: _VllmConfig
    engine_core: _Core

    def add_request(
        self, request_id: str, prompt: Mapping[str, object], params: object, *, lora_request: object
    ) -> object: ...

    def step(self) -> Sequence[Output]: ...

    def abort_request(self, request_ids: list[str]) -> None: ...

    def has_unfinished_requests(self) -> bool: ...


class _EngineClass(Protocol):
    def from_engine_args(self, engine_args: object) -> _LLMEngine: ...


class _Tokenizers(Protocol):
    def from_pretrained(self, path: str, **options: object) -> ChatTokenizer: ...


class VllmEngine:
    """A loaded engine: requests in, steps, finished answers out. To be used from one thread.

    Args:
        engine: vLLM's own.
        codec: the model's chat template and tokenizer.
        adapter: vLLM's LoRARequest for all requests, or None.
    """

    def __init__(self, engine: _LLMEngine, codec: Codec, adapter: object) -> None:
        self.codec = codec
        self._engine = engine
        self._adapter = adapter

    @property
    def context(self) -> int:
        """Context length in tokens."""
        return self._engine.vllm_config.model_config.max_model_len

    def add(self, key: str, request: ChatRequest) -> None:
        """Begin a request. Raises ChatError for one that cannot be answered."""
        others = {name: value for name, value in request.extra.items() if name != "chat_template_kwargs"}
        template = {name: value for name, value in request.extra.items() if name == "chat_template_kwargs"}
        bare = ChatRequest(request.messages, max_tokens=request.max_tokens, prefill=request.prefill, extra=template)
        prompt = {"prompt_token_ids": self.codec.encode(bare)}
        widest = self._engine.vllm_config.model_config.get_vocab_size()
        try:
            params = _sampling(request, others, widest)
            self._engine.add_request(key, prompt, params, lora_request=self._adapter)
        except Exception as error:
            # what vLLM raises for a bad request was a ValueError once; whatever else comes, the engine is broken
            kinds = {kind.__name__ for kind in type(error).__mro__}
            if not kinds & {"TypeError", "ValueError", "VLLMClientError"}:
                raise
            raise RequestError(f"vLLM refuses the request: {error}", provider=self.codec.name) from error

    def step(self) -> list[Output]:
        """Compute one step for all requests in progress, of which there must be some. Returns those that are
        finished. Raises RuntimeError where vLLM knows of none: nothing would ever come of them."""
        if not self._engine.has_unfinished_requests():
            raise RuntimeError("vLLM has lost the requests in progress")
        return [output for output in self._engine.step() if output.finished]

    def abort(self, keys: list[str]) -> None:
        """Give up requests; nothing more comes of them."""
        if keys:
            self._engine.abort_request(keys)

    def close(self) -> None:
        """Free the memory. The engine cannot be used afterwards."""
        self._engine.engine_core.shutdown()
        gc.collect()


def require_vllm() -> None:
    """Raises MissingExtraError where vLLM is not installed."""
    if importlib.util.find_spec("vllm") is None:
        raise MissingExtraError("vllm", extra="vllm")


def open_engine(source: Source, options: VllmOptions, name: str) -> VllmEngine:
    """Start vLLM on these weights. Raises ConfigError where it refuses them or the options."""
    require_vllm()
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")  # else three hundred lines at every start
    engine_args = cast("Callable[..., object]", importlib.import_module("vllm").EngineArgs)
    engine_class = cast("_EngineClass", importlib.import_module("vllm.v1.engine.llm_engine").LLMEngine)
    arguments: dict[str, object] = {
        "model": str(source.path),
        "dtype": options.resolved_dtype,
        "max_model_len": options.max_model_len,
        "gpu_memory_utilization": options.gpu_memory,
        "tensor_parallel_size": options.tensor_parallel,
        "enforce_eager": options.eager,
        "enable_prefix_caching": True,
        "max_logprobs": -1,  # no bound: a judge reads the mass of any answer's first token
        "disable_log_stats": True,
    }
    if source.adapter is not None:
        arguments |= {"enable_lora": True, "max_loras": 1, "max_lora_rank": _rank(source.adapter)}
    try:
        engine = engine_class.from_engine_args(engine_args(**{**arguments, **options.engine}))
        tokenizers = cast("_Tokenizers", importlib.import_module("transformers").AutoTokenizer)
        tokenizer = tokenizers.from_pretrained(str(source.path), local_files_only=True)
    except Exception as error:  # vLLM raises whatever happens to break; its reasons are in its log
        hint = 'VLLM_LOGGING_LEVEL=INFO shows why; a script needs `if __name__ == "__main__":` around its calls'
        raise ConfigError(f"vLLM cannot run {source.spec!r}: {error}", hint=hint) from error
    context = engine.vllm_config.model_config.max_model_len
    codec = Codec(tokenizer, name=name, context=context, stops=frozenset())
    return VllmEngine(engine, codec, _adapter(source))


def _adapter(source: Source) -> object:
    if source.adapter is None:
        return None
    request = cast("Callable[..., object]", importlib.import_module("vllm.lora.request").LoRARequest)
    return request(source.adapter.name, 1, str(source.adapter))


def _rank(adapter: Path) -> int:
    """The least rank that vLLM can be started with and that holds the adapter."""
    try:
        config = as_object(json.loads((adapter / "adapter_config.json").read_text(encoding="utf-8"))) or {}
    except (OSError, ValueError):
        config = {}
    ranks = [as_number(config.get("r")), *map(as_number, (as_object(config.get("rank_pattern")) or {}).values())]
    wanted = max((rank for rank in ranks if rank is not None), default=0.0)
    fitting = [rank for rank in _LORA_RANKS if rank >= wanted]
    if not wanted or not fitting:
        hint = f"vLLM takes LoRA adapters of rank {_LORA_RANKS[-1]} at most"
        raise ConfigError(f"the adapter {str(adapter)!r} has no rank r that vLLM can take", hint=hint)
    return fitting[0]


def _sampling(request: ChatRequest, others: Mapping[str, object], widest: int) -> object:
    """The request's sampling parameters as vLLM's, with further ones as they are; `widest` is the vocabulary."""
    module = importlib.import_module("vllm.sampling_params")
    params = cast("Callable[..., object]", module.SamplingParams)
    structured = cast("Callable[..., object]", module.StructuredOutputsParams)
    given: dict[str, object] = {
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "seed": request.seed,
        "stop": list(request.stop),
        "logprobs": None if request.top_logprobs is None else min(request.top_logprobs, widest),
    }
    if request.json_schema is not None:
        given["structured_outputs"] = structured(json=_plain(request.json_schema))
    return params(**{**given, **others})


def _plain(value: object) -> object:
    """A JSON value with plain dicts and lists, whatever mappings and tuples it was made of."""
    mapping = as_object(value)
    if mapping is not None:
        return {key: _plain(inner) for key, inner in mapping.items()}
    array = as_array(value)
    return value if array is None else [_plain(inner) for inner in array]
