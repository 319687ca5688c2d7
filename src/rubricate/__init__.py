"""Rubric-based reward modelling: weighted criteria in, judged verdicts and trustworthy rewards out.

Names are loaded when they are first used, so `import rubricate` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rubricate.lazy import lazy_names
from rubricate.version import __version__

if TYPE_CHECKING:  # the same names for type checkers, which do not follow __getattr__
    from rubricate.chat import connect
    from rubricate.data.records import Preference, Rollout, Turn
    from rubricate.errors import RubricateError
    from rubricate.judges import (
        CriterionJudge,
        HolisticJudge,
        LikertJudge,
        LogprobJudge,
        Router,
        ScriptedJudge,
        VerifierJudge,
        build_judge,
    )
    from rubricate.judges.verifiers import verifier
    from rubricate.rewardmodels import Aggregation, RubricReward
    from rubricate.rubrics import Criterion, Group, Rubric, compose
    from rubricate.rubrics.formats import load_rubrics, parse_rubric, save_rubrics
    from rubricate.types import Failure, Judgement, Reward, Usage, Verdict

_HOME = {
    "Aggregation": "rubricate.rewardmodels",
    "Criterion": "rubricate.rubrics",
    "CriterionJudge": "rubricate.judges",
    "Failure": "rubricate.types",
    "Group": "rubricate.rubrics",
    "HolisticJudge": "rubricate.judges",
    "Judgement": "rubricate.types",
    "LikertJudge": "rubricate.judges",
    "LogprobJudge": "rubricate.judges",
    "Preference": "rubricate.data.records",
    "Reward": "rubricate.types",
    "Rollout": "rubricate.data.records",
    "Router": "rubricate.judges",
    "Rubric": "rubricate.rubrics",
    "RubricReward": "rubricate.rewardmodels",
    "RubricateError": "rubricate.errors",
    "ScriptedJudge": "rubricate.judges",
    "Turn": "rubricate.data.records",
    "Usage": "rubricate.types",
    "Verdict": "rubricate.types",
    "VerifierJudge": "rubricate.judges",
    "build_judge": "rubricate.judges",
    "compose": "rubricate.rubrics",
    "connect": "rubricate.chat",
    "load_rubrics": "rubricate.rubrics.formats",
    "parse_rubric": "rubricate.rubrics.formats",
    "save_rubrics": "rubricate.rubrics.formats",
    "verifier": "rubricate.judges.verifiers",
}

__all__ = [
    "Aggregation",
    "Criterion",
    "CriterionJudge",
    "Failure",
    "Group",
    "HolisticJudge",
    "Judgement",
    "LikertJudge",
    "LogprobJudge",
    "Preference",
    "Reward",
    "Rollout",
    "Router",
    "Rubric",
    "RubricReward",
    "RubricateError",
    "ScriptedJudge",
    "Turn",
    "Usage",
    "Verdict",
    "VerifierJudge",
    "__version__",
    "build_judge",
    "compose",
    "connect",
    "load_rubrics",
    "parse_rubric",
    "save_rubrics",
    "verifier",
]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
