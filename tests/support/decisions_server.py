"""A loopback server with a decisions API in one dialect, as strict about fields as the real ones are."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from rubricate.narrow import as_array, as_object

__all__ = ["DecisionsServer", "serving"]

Shares = Callable[[str, int], Sequence[float]]
Record = dict[str, Any]

_FIELDS = {
    "openai": ({"model", "input", "questions", "safety_identifier"}, {"type", "instructions", "name"}),
    "sglang": ({"input", "questions", "temperature", "model"}, {"id", "type", "question"}),
    "systemone": ({"model", "state", "questions", "chat_template_kwargs"}, {"type", "instructions"}),
}
_SHAPES = {"predicate": set[str](), "yes_no": {"yes", "no"}, "noul": {"criteria"}, "choice": {"choices", "options"}}


@dataclass
class DecisionsServer:
    """Answers decisions.

    Attributes:
        dialect: `openai` (as vLLM 0.33), `sglang`, or `systemone` (as vLLM).
        shares: gets a question's text and how many answers there are, and gives their probabilities, no before yes.
        mass: probability of all answers in the vocabulary.
        refused: status for bodies that it does not understand.
        damage: changes a reply before it is sent.
        bodies: what was asked, in order, with the path under `path`.
    """

    dialect: str
    shares: Shares = lambda text, count: (0.25, 0.75) if count == 2 else [1.0 / count] * count
    mass: float = 0.9
    refused: int = 400
    status: int = 200
    damage: Callable[[Record], Record] = lambda reply: reply
    bodies: list[Record] = field(default_factory=list[Record])
    url: str = ""

    def reply(self, path: str, body: Record) -> tuple[int, Record]:
        """Status and reply to a body."""
        self.bodies.append({**body, "path": path})
        own = "/v1/systemone" if self.dialect == "systemone" else "/v1/decisions"
        if path != own:
            return 404, {"detail": "Not Found"}
        if self.status != 200:
            return self.status, {"error": {"message": "The model does not support the Decisions API"}}
        wrong = self._wrong(body)
        if wrong:
            return self.refused, {"error": {"message": wrong}}
        return 200, self.damage(
            {"openai": self._openai, "sglang": self._sglang, "systemone": self._systemone}[self.dialect](body)
        )

    def _wrong(self, body: Record) -> str:
        top, inner = _FIELDS[self.dialect]
        if set(body) - top:
            return f"unknown field {sorted(set(body) - top)}"
        keyed = as_object(body["questions"]) or {}
        for item in keyed.values() or as_array(body["questions"]) or ():
            question = as_object(item) or {}
            allowed = inner | {"levels", "criteria"} | _SHAPES.get(str(question.get("type")), set())
            if set(question) - allowed or not inner <= set(question) | {"name"}:
                return f"wrong fields {sorted(question)}"
        return ""

    def _openai(self, body: Record) -> Record:
        answers: list[Record] = []
        for question in body["questions"]:
            count = len(question.get("levels", ())) or 2
            shares = self.shares(question["instructions"], count)
            answer: Record = {"type": question["type"], "name": question.get("name")}
            if question["type"] == "predicate":
                answer["probability"] = shares[1]
            elif question["type"] == "choice":
                values = [choice["value"] for choice in question["choices"]]
                answer["choice"] = values[shares.index(max(shares))]
                answer["probabilities"] = [
                    {"value": v, "probability": p} for v, p in zip(values, shares, strict=True)
                ]
                answer["confidence"] = max(shares) * self.mass
            else:
                answer["score"] = sum(n * p for n, p in enumerate(shares))
                answer["probabilities"] = [
                    {"value": n, "label": level["label"], "probability": shares[n]}
                    for n, level in enumerate(question["levels"])
                ]
                answer["confidence"] = max(shares) * self.mass
            answers.append(answer)
        usage = {"input_tokens": 120, "input_tokens_details": {"cached_tokens": 96}, "output_tokens": len(answers)}
        return {"model": body["model"], "answers": answers, "usage": usage}

    def _sglang(self, body: Record) -> Record:
        answers: Record = {}
        for question in body["questions"]:
            levels = question.get("levels", ())
            shares = self.shares(question["question"], len(levels) or 2)
            names = [str(n) for n in range(len(levels))] or ["no", "yes"]
            answers[question["id"]] = {
                "type": question["type"],
                "probabilities": dict(zip(names, shares, strict=True)),
                "label_mass": self.mass,
                **({"score": sum(n * p for n, p in enumerate(shares))} if levels else {}),
            }
        usage = {"prompt_tokens": 120, "total_tokens": 120, "completion_tokens": 0}
        return {
            "object": "decisions",
            "model": "default",
            "prompt_format_version": 1,
            "answers": answers,
            "usage": usage,
        }

    def _systemone(self, body: Record) -> Record:
        answers: Record = {}
        questions: Mapping[str, Record] = body["questions"]
        for name, question in questions.items():
            levels = question.get("criteria", ())
            shares = self.shares(question["instructions"], len(levels) or 2)
            answers[name] = {"type": question["type"], "confidence": max(shares) * self.mass}
            if levels:
                answers[name]["score"] = sum(n * p for n, p in enumerate(shares))
                answers[name]["probabilities"] = {str(n): p for n, p in enumerate(shares)}
            else:
                answers[name]["noul"] = shares[1]
        diagnostics = {name: {"label_mass": self.mass, "argmax_is_label": True} for name in answers}
        return {"answers": answers, "diagnostics": diagnostics, "usage": {"input_tokens": 120, "output_tokens": 2}}


@asynccontextmanager
async def serving(server: DecisionsServer) -> AsyncGenerator[DecisionsServer, None]:
    """Serve it on a free port of 127.0.0.1 while the block runs; its `url` is the base address."""
    from aiohttp import web

    async def on_post(request: web.Request) -> web.Response:
        status, reply = server.reply(request.path, json.loads(await request.read()))
        return web.json_response(reply, status=status)

    async def on_get(request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "tiny"}]})

    app = web.Application()
    app.router.add_post("/{rest:.*}", on_post)
    app.router.add_get("/v1/models", on_get)
    runner = web.AppRunner(app, shutdown_timeout=0.2, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        yield server
    finally:
        await runner.cleanup()
