"""Salutations, sign-offs and subject lines."""

from __future__ import annotations

import random

from rubricate.training.checks.banks import Topic
from rubricate.training.checks.layout import Frame

__all__ = ["LETTER_TASKS", "add_letter_parts"]

LETTER_TASKS = frozenset({"email", "letter", "application", "complaint", "invitation"})
_NAMES = (
    "Ms Novak", "Mr Baptiste", "Dr Osei", "Ms Lindqvist", "Mr Haddad", "Tomas", "Ines", "Prof. Marchetti",
    "Ms Tanaka", "Yusuf", "Carla", "Mr Kowalski",
)  # fmt: skip
_SENDERS = (
    "Elena",
    "R. Duarte",
    "Malik",
    "Sofia Brandt",
    "J. Nakamura",
    "Ivo",
    "Petra Lund",
    "Noor",
    "Hugo",
    "M. Silva",
)
_SALUTATIONS = {
    "en": ("Dear {name},", "Hello {name},", "Hi {name},", "Good morning {name},"),
    "de": ("Guten Tag {name},", "Hallo {name},", "Guten Morgen {name},"),
    "fr": ("Bonjour {name},", "Chère équipe de {name},", "Cher {name},"),
    "es": ("Hola {name}:", "Buenos días, {name}:", "Apreciado equipo de {name}:"),
    "it": ("Buongiorno {name},", "Ciao {name},"),
    "pt": ("Olá {name},", "Bom dia {name},"),
    "nl": ("Beste {name},", "Hallo {name},"),
}
_SIGN_OFFS = {
    "en": ("Kind regards,", "Best wishes,", "Yours sincerely,", "Best,", "Regards,"),
    "de": ("Mit freundlichen Grüßen", "Viele Grüße", "Beste Grüße"),
    "fr": ("Cordialement,", "Bien à vous,", "Meilleures salutations,"),
    "es": ("Un saludo,", "Atentamente,", "Saludos cordiales,"),
    "it": ("Cordiali saluti,", "Un saluto,"),
    "pt": ("Atenciosamente,", "Cumprimentos,"),
    "nl": ("Met vriendelijke groet,", "Groeten,"),
}
_SUBJECTS = {
    "en": ("Subject: Your request", "Subject: A short note", "Subject: News", "Subject: What we spoke about"),
    "de": ("Betreff: Ihre Anfrage", "Betreff: Kurze Nachricht"),
    "fr": ("Objet : votre demande", "Objet : quelques mots"),
    "es": ("Asunto: su consulta", "Asunto: unas líneas"),
    "it": ("Oggetto: la vostra richiesta",),
    "pt": ("Assunto: o seu pedido",),
    "nl": ("Onderwerp: uw vraag",),
}


def add_letter_parts(frame: Frame, marks: set[str], layout: str, topic: Topic, rng: random.Random) -> None:
    """Put parts of a letter around a text, often where the task is one, and note them among the marks."""
    language = topic.language
    if layout in ("json", "broken_json") or language not in _SALUTATIONS:
        return
    often = topic.task in LETTER_TASKS
    if rng.random() < (0.35 if often else 0.04):
        frame.head.append(rng.choice(_SUBJECTS[language]))
        marks.add("subject_line")
    if rng.random() < (0.6 if often else 0.08):
        frame.head.append(rng.choice(_SALUTATIONS[language]).format(name=rng.choice(_NAMES)))
        marks.add("salutation")
    if rng.random() < (0.6 if often else 0.08) and "cut" not in marks:
        frame.foot.insert(0, f"{rng.choice(_SIGN_OFFS[language])}\n{rng.choice(_SENDERS)}")
        marks.add("sign_off")
