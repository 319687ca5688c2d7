"""Judges: code or language models that say which criteria a response meets, and which of several is better.

Names are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rubricate.lazy import lazy_names

if TYPE_CHECKING:  # the same names for type checkers, which do not follow __getattr__
    from rubricate.judges.arrow import ArrowJudge
    from rubricate.judges.base import CriteriaJudge, Material, ModelJudge, failure_of
    from rubricate.judges.building import MODES, build_judge, default_mode, shipped_bundle
    from rubricate.judges.bundle import Bundle, load_judge, read_bundle, save_bundle
    from rubricate.judges.calibrated import Calibrated, Labelled, LabelledProbabilities, gather_probabilities
    from rubricate.judges.calibration import Calibration, fit_calibration
    from rubricate.judges.cascade import Cascade, CascadeReport
    from rubricate.judges.code import VerifierJudge
    from rubricate.judges.criterion import CriterionJudge
    from rubricate.judges.decisions import DecisionsJudge
    from rubricate.judges.fewshot import Example, Examples
    from rubricate.judges.generated import generate_verifier, generate_verifiers, propose_verifier
    from rubricate.judges.generated_types import GeneratedVerifier, Proposal, ProposalOutcome, VerifierReport
    from rubricate.judges.geval import ExpectationJudge, HolisticExpectationJudge
    from rubricate.judges.holistic import HolisticJudge, LikertJudge
    from rubricate.judges.jury import Jury, mean_agreement
    from rubricate.judges.listwise import ListwiseJudge
    from rubricate.judges.logprob import AnswerMass, LogprobJudge, answer_mass
    from rubricate.judges.mass import LabelMass, label_mass
    from rubricate.judges.mixed import CheckCounts, MixedJudge
    from rubricate.judges.pairwise import PairJudge, PairwiseJudge
    from rubricate.judges.pairwise_cheap import LogprobPairJudge, PointwisePairJudge
    from rubricate.judges.pairwise_reading import check_rubric_rm, rm_r1_reward
    from rubricate.judges.rating import RatingJudge, rlcf_judge
    from rubricate.judges.repeated import Repeated
    from rubricate.judges.router import Router
    from rubricate.judges.scripted import ScriptedJudge
    from rubricate.judges.slots import SlotsJudge
    from rubricate.judges.spct import SpctJudge
    from rubricate.judges.spct_critic import Critic, Critique, FunctionCritic, JudgeCritic, ModelCritic
    from rubricate.judges.tournament import Tournament
    from rubricate.judges.view import View, final_answer, get_view, trajectory
    from rubricate.judges.votes import baseline_reward, comparison_reward, group_rewards, majority, win_rate

_HOME = {
    "AnswerMass": "rubricate.judges.logprob",
    "ArrowJudge": "rubricate.judges.arrow",
    "Bundle": "rubricate.judges.bundle",
    "Calibrated": "rubricate.judges.calibrated",
    "Calibration": "rubricate.judges.calibration",
    "Cascade": "rubricate.judges.cascade",
    "CascadeReport": "rubricate.judges.cascade",
    "CheckCounts": "rubricate.judges.mixed",
    "CriteriaJudge": "rubricate.judges.base",
    "CriterionJudge": "rubricate.judges.criterion",
    "Critic": "rubricate.judges.spct_critic",
    "Critique": "rubricate.judges.spct_critic",
    "DecisionsJudge": "rubricate.judges.decisions",
    "Example": "rubricate.judges.fewshot",
    "Examples": "rubricate.judges.fewshot",
    "ExpectationJudge": "rubricate.judges.geval",
    "FunctionCritic": "rubricate.judges.spct_critic",
    "GeneratedVerifier": "rubricate.judges.generated_types",
    "HolisticExpectationJudge": "rubricate.judges.geval",
    "HolisticJudge": "rubricate.judges.holistic",
    "JudgeCritic": "rubricate.judges.spct_critic",
    "Jury": "rubricate.judges.jury",
    "LabelMass": "rubricate.judges.mass",
    "Labelled": "rubricate.judges.calibrated",
    "LabelledProbabilities": "rubricate.judges.calibrated",
    "LikertJudge": "rubricate.judges.holistic",
    "ListwiseJudge": "rubricate.judges.listwise",
    "LogprobJudge": "rubricate.judges.logprob",
    "LogprobPairJudge": "rubricate.judges.pairwise_cheap",
    "MODES": "rubricate.judges.building",
    "Material": "rubricate.judges.base",
    "MixedJudge": "rubricate.judges.mixed",
    "ModelCritic": "rubricate.judges.spct_critic",
    "ModelJudge": "rubricate.judges.base",
    "PairJudge": "rubricate.judges.pairwise",
    "PairwiseJudge": "rubricate.judges.pairwise",
    "PointwisePairJudge": "rubricate.judges.pairwise_cheap",
    "Proposal": "rubricate.judges.generated_types",
    "ProposalOutcome": "rubricate.judges.generated_types",
    "RatingJudge": "rubricate.judges.rating",
    "Repeated": "rubricate.judges.repeated",
    "Router": "rubricate.judges.router",
    "ScriptedJudge": "rubricate.judges.scripted",
    "SlotsJudge": "rubricate.judges.slots",
    "SpctJudge": "rubricate.judges.spct",
    "Tournament": "rubricate.judges.tournament",
    "VerifierJudge": "rubricate.judges.code",
    "VerifierReport": "rubricate.judges.generated_types",
    "View": "rubricate.judges.view",
    "answer_mass": "rubricate.judges.logprob",
    "baseline_reward": "rubricate.judges.votes",
    "build_judge": "rubricate.judges.building",
    "check_rubric_rm": "rubricate.judges.pairwise_reading",
    "comparison_reward": "rubricate.judges.votes",
    "default_mode": "rubricate.judges.building",
    "failure_of": "rubricate.judges.base",
    "final_answer": "rubricate.judges.view",
    "fit_calibration": "rubricate.judges.calibration",
    "gather_probabilities": "rubricate.judges.calibrated",
    "generate_verifier": "rubricate.judges.generated",
    "generate_verifiers": "rubricate.judges.generated",
    "get_view": "rubricate.judges.view",
    "group_rewards": "rubricate.judges.votes",
    "label_mass": "rubricate.judges.mass",
    "load_judge": "rubricate.judges.bundle",
    "majority": "rubricate.judges.votes",
    "mean_agreement": "rubricate.judges.jury",
    "propose_verifier": "rubricate.judges.generated",
    "read_bundle": "rubricate.judges.bundle",
    "rlcf_judge": "rubricate.judges.rating",
    "rm_r1_reward": "rubricate.judges.pairwise_reading",
    "save_bundle": "rubricate.judges.bundle",
    "shipped_bundle": "rubricate.judges.building",
    "trajectory": "rubricate.judges.view",
    "win_rate": "rubricate.judges.votes",
}

__all__ = [
    "AnswerMass",
    "ArrowJudge",
    "Bundle",
    "Calibrated",
    "Calibration",
    "Cascade",
    "CascadeReport",
    "CheckCounts",
    "CriteriaJudge",
    "CriterionJudge",
    "Critic",
    "Critique",
    "DecisionsJudge",
    "Example",
    "Examples",
    "ExpectationJudge",
    "FunctionCritic",
    "GeneratedVerifier",
    "HolisticExpectationJudge",
    "HolisticJudge",
    "JudgeCritic",
    "Jury",
    "LabelMass",
    "Labelled",
    "LabelledProbabilities",
    "LikertJudge",
    "ListwiseJudge",
    "LogprobJudge",
    "LogprobPairJudge",
    "MODES",
    "Material",
    "MixedJudge",
    "ModelCritic",
    "ModelJudge",
    "PairJudge",
    "PairwiseJudge",
    "PointwisePairJudge",
    "Proposal",
    "ProposalOutcome",
    "RatingJudge",
    "Repeated",
    "Router",
    "ScriptedJudge",
    "SlotsJudge",
    "SpctJudge",
    "Tournament",
    "VerifierJudge",
    "VerifierReport",
    "View",
    "answer_mass",
    "baseline_reward",
    "build_judge",
    "check_rubric_rm",
    "comparison_reward",
    "default_mode",
    "failure_of",
    "final_answer",
    "fit_calibration",
    "gather_probabilities",
    "generate_verifier",
    "generate_verifiers",
    "get_view",
    "group_rewards",
    "label_mass",
    "load_judge",
    "majority",
    "mean_agreement",
    "propose_verifier",
    "read_bundle",
    "rlcf_judge",
    "rm_r1_reward",
    "save_bundle",
    "shipped_bundle",
    "trajectory",
    "win_rate",
]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
