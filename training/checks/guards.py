"""What in a topic's own sentences might pass for a trait. Nothing is asked about the trait then: every label has to
be beyond doubt, and topics were written without a look at every trait."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["doubtful"]

_REFUSAL = r"\brefus|\bdeclin|\bI (?:can't|cannot|won't|will not|do not|am not|may not)|not something I|not able to"
_ENGLISH = {
    "apology": r"\bsorry\b|apolog|\bpardon|forgiv|regret",
    "thanks": r"\bthank|grateful|appreciat",
    "rude": r"stupid|idiot|fool|lazy|ugly",
    "empathetic": r"\bfeel|sorry|hard for|understand|comfort|grief|worr",
    "formal": r"\bhereby|herewith|kindly|humbl|sincere|honou?r",
    "enthusiastic": r"!|wonderful|amazing|fantastic|\blove|delight|great\b|superb|thrill",
    "sarcastic": r"of course|surely|wonderful",
    "pessimistic": r"no hope|fail|worse|unfortunate|sadly|too late|lost|collapse|doom|never|ruin",
    "encouraging": r"you can|good start|anyone can|easy|worth|keep going|confiden",
    "condescending": r"even a child|simple enough|obvious",
    "moralising": r"\bshould|\bought|\bmust\b|\bduty|\bwrong\b|shame|fair\b|right thing|deserve|owe",
    "threatening": r"\bor else|\bwarn|consequence|legal action|court|deadline|if you do not|otherwise",
    "flattery": r"\bgreat|excellent|wise|clever|impress|admire",
    "uncertainty": r"\bmay\b|might|perhaps|probabl|possibl|seem|appear|likely|unclear|unsure|not sure|could"
    r"|guess|doubt",
    "overconfidence": r"always|never|certain|definite|guarante|no doubt|beyond|every|without fail|sure\b"
    r"|only\b",
    "may_be_wrong": r"wrong|mistake|error|may\b|might",
    "professional": r"doctor|physician|solicitor|lawyer|attorney|profession|expert|specialist|helpline|\bvet\b"
    r"|pharmacist|nurse|hospital|emergency|advis|counsel|electrician|plumber|mechanic|dentist|therap",
    "refuses": _REFUSAL,
    "partial_refusal": _REFUSAL,
    "refusal_reason": _REFUSAL,
    "offers_alternative": r"instead|alternativ|rather|other option",
    "names_source": r"according|report|stud(?:y|ies)\b|survey|source|guide|manual|handbook|agency|institute"
    r"|\bsays?\b",
    "cites_study": r"stud(?:y|ies)\b|research|survey|trial|scientist|experiment",
    "gives_link": r"www\.|http|\blink|web ?(?:site|page)",
    "quotes_person": r"[\"“”]|\bsaid\b|\bsays\b|quot",
    "own_limits": r"\bcannot\b|can't|unable|do not know",
    "summary": r"in short|to sum|overall|summar|in all\b|in brief|all in all",
    "call_to_action": r"(?:^|[.!?] )(?:[A-Z][a-z]+ )(?:the|a|an|your|two|three|it|all|any|in|on|with)\b|please"
    r"|\bjoin|sign up",
    "next_steps": r"\bnext\b|\bthen\b|after that|later|tomorrow|follow|once|will (?:send|call|write|be)",
    "asks_clarifying": r"\?",
    "rhetorical_question": r"\?",
    "offers_help": r"\bhelp|happy to|let me know|call me|contact|reach|questions?\b|gladly",
    "example": r"for example|for instance|such as|\blike\b|e\.g\.|\bsay,|including|case of|suppose",
    "analogy": r"\blike\b|\bas if\b|similar|as .{2,20} as\b|\bacts as|resembl|compar|the way",
    "metaphor": r"\blike\b|\bacts? as|mirror|engine|heart|backbone|bridge|ocean|sea of|dance|sleep"
    r"|eats?\b|kill|dead"
    r"|fight|breath|swallow|climb|thirst|hungry|soul|jungle|storm|fuel",
    "warning": r"\bwarn|danger|careful|caution|never\b|\brisk|poison|toxic|harm|must not|do not|don't"
    r"|avoid|hurt|damage"
    r"|burn|otherwise|unless|too (?:much|long|hot|many|early|late)|lose|ruin|spoil|break|before it|or the",
    "definition": r"\bis (?:a|an|the|any)\b|\bare\b|means?\b|stands for|called|known as|refers to|describe"
    r"|defin|\bterm\b",
    "anecdote": r"\b(?:I|me|my|we|our|us)\b|last (?:year|week|summer)|once\b",
    "opinion": r"\b(?:I|my|me)\b|\bbest\b|better|should|beautiful|worth|lovely|good\b|fine\b|nice|ideal"
    r"|deserv|great",
    "statistics": r"\d|per ?cent|\bhalf\b|third|quarter|out of|average|\bmost\b|majority|twice|one in|thousand"
    r"|million|hundred",
    "price": r"[£$€]|euro|pound|dollar|\bcents?\b|cost|price|fee\b|cheap|expensive|\bpay|paid"
    r"|free of charge|money|budget",
    "date": r"\d"
    r"|\b(?:january|february|march|april|may|june|july|august|september|october|november|december)\b",
    "names_person": r"(?<=[a-z,;] )[A-Z][a-z]+|\b(?:Ms|Mr|Mrs|Dr|Prof)\b",
    "history": r"\d{3,4}|centur|ancient|\bold\b|the past|used to|\bonce\b|ago\b|\bera\b|\bwas\b|\bwere\b"
    r"|\bhad\b|first\b"
    r"|invent|since|origin|tradition|founded|built",
    "disclaimer": r"advice|responsib|liab|replace|general|profession|guarantee",
    "clickbait": r"secret|shock|believe|trick",
    "advert": r"sponsor|brand|offer|discount|sale\b|\bbuy|shop|order|product|special",
    "urgency": r"\bnow\b|today|immediate|at once|hurry|deadline|within|soon|straight away|right away"
    r"|last chance|by \w+day",
    "urges_to_buy": r"\bbuy|purchas|order|shop|get (?:one|yours)|invest",
    "medical_advice": r"doctor|pain|medic|dose|drug|tablet|ice\b|wound|bandage|health|sleep|diet|exercise"
    r"|drink|injur"
    r"|symptom|skin|blood|stretch|rest\b|swell|water",
    "mild_violence": r"kill|\bhit\b|fight|attack|beat|shoot|punch|strike|blow|weapon|knife",
    "personal_data": r"@|\d{3,}|phone|telephone|address|street|road\b|lane\b",
    "jargon": r"stakeholder|leverage|synerg|scal|roadmap|align|strateg|market|brand|client|deliver",
    "humour": r"joke|funny|laugh|!",
    "filler": r"actually|basically|really|\bjust\b|simply|\bwell\b,|you know|of course|quite|very"
    r"|so to speak|kind of",
    "vague": r"\bsome(?:thing|how|times)\b|depends|various|many|thing|often|usually|certain",
    "by_name": r"\b(?:Dear|Hello|Hi)\b",
    "first_plural": r"\b(?:we|us|our|ours|let's)\b",
    "second_person": r"\b(?:you|your|yours|yourself)\b",
    "slang": r"\b(?:gonna|wanna|kinda|cool|stuff|guys|awesome|dude|folks)\b",
    "self_praise": r"\bthis (?:answer|response|text|guide)\b",
}
_OTHERS = {
    "de": {
        "warning": r"vorsicht|gefahr|gefähr|warn|achtung|\bnie\b|darf|dürfen|nicht|sonst"
        r"|\bzu (?:lange|heiß|viel)|schad|risiko",
        "uncertainty": r"vielleicht|wohl|könnte|möglich|schein|etwa|vermut|wahrscheinlich|unklar|mag\b",
        "names_source": r"laut\b|angab|quelle|zufolge|studie|bericht|nach dem|handbuch",
        "offers_help": r"helf|hilfe|gern|melden|fragen|zur verfügung",
        "asks_clarifying": r"\?",
        "thanks": r"dank",
        "apology": r"entschuldig|leid|verzeih|pardon|bedau",
    },
    "fr": {
        "warning": r"attention|danger|prudence|gare|jamais|ne pas|risque|éviter|évitez|sinon|trop|sans quoi"
        r"|brûl|abîm",
        "uncertainty": r"peut|sans doute|environ|semble|probable|pourrait|possible|paraît|incertain",
        "names_source": r"selon|d'après|source|étude|rapport|guide|manuel",
        "offers_help": r"aid|volontiers|question|disposition|contact",
        "asks_clarifying": r"\?",
        "thanks": r"merci|reconnaiss|gré",
        "apology": r"excus|désol|pardon|regret|navr",
    },
    "es": {
        "warning": r"cuidado|peligro|atención|nunca|riesgo|evit|ojo|demasiad|\bno\b|si no|advert|quem|dañ",
        "uncertainty": r"quizá|tal vez|puede|podría|parece|probable|posible|seguramente|alrededor|unos\b",
        "names_source": r"según|fuente|estudio|informe|manual|guía",
        "offers_help": r"ayud|pregunt|dud|disposición|contact|gusto",
        "asks_clarifying": r"\?",
        "thanks": r"gracia|agrade",
        "apology": r"perd[oó]n|disculp|lament|siento|lástima",
    },
    "it": {
        "warning": r"attenzion|pericol|\bmai\b|rischi|evit|altriment|troppo|\bnon\b|bruci|danneg|cautela"
        r"|prudenz",
        "uncertainty": r"forse|potrebbe|\bpuò\b|sembra|probabil|possibil|circa|magari|pare\b",
        "names_source": r"secondo|fonte|studio|rapporto|manuale|guida",
        "offers_help": r"aiut|domand|disposizion|contatt|volentieri",
        "asks_clarifying": r"\?",
        "thanks": r"grazi|ringrazi|grat[oai]\b",
        "apology": r"scus|dispiac|perdon|ramm",
    },
    "pt": {
        "warning": r"cuidado|perigo|atenção|nunca|risco|evit|demasiad|\bnão\b|senão|queim|danific",
        "uncertainty": r"talvez|\bpode|parece|provável|provavel|possível|cerca|poderia",
        "names_source": r"segundo|fonte|estudo|relatório|manual|guia",
        "offers_help": r"ajud|pergunt|dúvid|disposição|contact",
        "asks_clarifying": r"\?",
        "thanks": r"obrigad|agrade|gratid|grat[oa]\b",
        "apology": r"desculp|perd|lament|sinto|pena",
    },
}


def _compiled(patterns: Mapping[str, str]) -> dict[str, re.Pattern[str]]:
    return {
        kind: re.compile(pattern, 0 if kind in ("names_person", "call_to_action") else re.IGNORECASE)
        for kind, pattern in patterns.items()
    }


_GUARDS = {"en": _compiled(_ENGLISH), **{language: _compiled(patterns) for language, patterns in _OTHERS.items()}}
_PERSONAL = frozenset(
    {
        "email",
        "letter",
        "application",
        "complaint",
        "invitation",
        "announcement",
        "dialogue",
        "review",
        "story",
        "product",
    }
)
_ABOUT_PEOPLE = (
    "empathetic",
    "formal",
    "enthusiastic",
    "encouraging",
    "flattery",
    "advert",
    "clickbait",
    "urges_to_buy",
    "call_to_action",
    "next_steps",
    "anecdote",
    "opinion",
    "by_name",
    "names_person",
    "offers_help",
    "humour",
    "own_process",
    "metaphor",
    "refusal_reason",
    "partial_refusal",
    "refuses",
    "offers_alternative",
    "own_limits",
    "professional",
    "threatening",
    "pessimistic",
)
_UNKNOWN_IN: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(
        _ABOUT_PEOPLE,
        _PERSONAL,
    ),
    "medical_advice": frozenset({"health", "advice", "recipe", "plan"}),
    "jargon": frozenset({"finance", "product", "email", "application"}),
}
_IMPERATIVE = frozenset({"howto", "recipe", "advice", "plan", "health", "law", "finance", "travel"})


def doubtful(kind: str, language: str, task: str, matter: str) -> bool:
    """Whether the sentences of a topic might have a trait by themselves.

    Args:
        task: the topic's.
        matter: everything in the response that is not a trait's phrase.
    """
    if task in _UNKNOWN_IN.get(kind, ()) or (kind in ("call_to_action", "next_steps") and task in _IMPERATIVE):
        return True
    guard = _GUARDS.get(language, {}).get(kind)
    return guard is not None and guard.search(matter) is not None
