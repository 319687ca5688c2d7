"""Judges: code or language models that say which criteria a response meets."""

from rubricate.judges.base import CriteriaJudge, Material, ModelJudge, failure_of
from rubricate.judges.code import VerifierJudge
from rubricate.judges.criterion import CriterionJudge
from rubricate.judges.holistic import HolisticJudge, LikertJudge
from rubricate.judges.logprob import AnswerMass, LogprobJudge, answer_mass
from rubricate.judges.router import MODES, Router, build_judge
from rubricate.judges.scripted import ScriptedJudge
from rubricate.judges.view import View, final_answer, get_view, trajectory

__all__ = [
    "MODES",
    "AnswerMass",
    "CriteriaJudge",
    "CriterionJudge",
    "HolisticJudge",
    "LikertJudge",
    "LogprobJudge",
    "Material",
    "ModelJudge",
    "Router",
    "ScriptedJudge",
    "VerifierJudge",
    "View",
    "answer_mass",
    "build_judge",
    "failure_of",
    "final_answer",
    "get_view",
    "trajectory",
]
