"""Aggregations by name: the systems that use them, with their sources."""

from __future__ import annotations

from collections.abc import Mapping

from rubricate.errors import ConfigError
from rubricate.rewardmodels.aggregation import RAR_V1_WEIGHTS, Aggregation

__all__ = ["PRESETS", "preset", "preset_names"]

_SIGNED_POINTS = Aggregation(value="binary", only_negative="undefined")
_SHARE = Aggregation(value="binary", polarity="credit", denominator="absolute")
_RAR = Aggregation(value="binary", weights="importance", polarity="credit", denominator="absolute")
_ARROW = Aggregation(evidence="probability", value="signed", weights="kind", denominator="none")

PRESETS: Mapping[str, tuple[Aggregation, str]] = {
    "all_or_nothing": (
        Aggregation(value="binary", combine="all_or_nothing"),
        "1 when every reward criterion is met and no penalty is, else 0. AdvancedIF / RIFL (2511.10507).",
    ),
    "dr_tulu": (
        Aggregation(denominator="positive_or_one"),
        "Values 0, 0.5, 1; sum(w v) / max(sum of positive w, 1), unclipped. DR Tulu (2511.19399), released code.",
    ),
    "healthbench": (
        _SIGNED_POINTS,
        "Points of the items met / sum of positive points, unclipped; no value without positive points. Clip the "
        "mean over a data set with `clipped_mean`. HealthBench, openai/simple-evals.",
    ),
    "hybrid": (
        Aggregation(value="binary", combine="hybrid", polarity="credit", denominator="absolute"),
        "Half all-or-nothing, half the weighted share: the middle of the three that RIFL (2511.10507) compares; "
        "the paper states no formula, this mixture is ours.",
    ),
    "mean": (
        Aggregation(combine="mean", polarity="credit", denominator="absolute"),
        "Unweighted mean over the criteria; an avoided error counts as met. Ours.",
    ),
    "online_rubrics": (
        Aggregation(value="binary"),
        "Sum of signed weights of the items present / sum of positive weights, unclipped, over static and elicited "
        "criteria together. OnlineRubrics (2510.07284).",
    ),
    "open_instruct": (
        Aggregation(denominator="absolute"),
        "As `dr_tulu`, divided by the sum of absolute weights. The port in allenai/open-instruct.",
    ),
    "paperbench": (
        Aggregation(combine="nested", polarity="credit", denominator="absolute"),
        "Weighted mean of its children at every node of the tree, bottom up. PaperBench, openai/frontier-evals.",
    ),
    "rar": (
        _RAR,
        "Sum of the weights earned / sum of weights; Essential 1, Important 0.7, Optional 0.3, Pitfall 0.9. A "
        "pitfall written as an error (penalty) earns when it is avoided, one written as 'avoids ...' (reward) when "
        "it is met. Rubrics as Rewards, explicit (2507.17746 v2, section 3).",
    ),
    "rar_implicit": (
        Aggregation(mode="implicit", normaliser="min_max"),
        "The judge's rating r from 1 to 10 as (r - 1) / 9. Rubrics as Rewards, implicit (2507.17746); the paper "
        "states no normaliser, this is EvoLM's (2605.03871). DR Tulu's r / 10 is normaliser='over_max'.",
    ),
    "rar_v1": (
        _RAR.changed(importance_weights=dict(RAR_V1_WEIGHTS)),
        "As `rar` with Pitfall 0.8. Rubrics as Rewards (2507.17746 v1).",
    ),
    "rbr": (
        Aggregation(evidence="probability", denominator="none"),
        "Sum of weight times probability over the propositions, to be added to a reward model's score. The weights "
        "are fitted reals: a negative one is a penalty criterion. Rule-Based Rewards (2411.01111).",
    ),
    "rlac": (
        Aggregation(value="binary", combine="minimum"),
        "The worst criterion decides. RLAC (2511.01758).",
    ),
    "rlcf": (
        _SHARE.changed(value="score"),
        "Sum of weight (0 to 100) times mean judge score, over sum of weights, in [0, 1]; scores of 0 to 100 come "
        "normalised by their scale. RLCF (2507.18624).",
    ),
    "rrd": (
        Aggregation(value="binary", denominator="none"),
        "Sum of weight times verdict with whitened weights, which are >= 0 and sum to 1. RRD (2602.05125).",
    ),
    "rubric_arrow_judge": (
        _ARROW,
        "Sum of w (p(true) - p(false)), w = 3 for hard rules and 1 for principles, undivided: the rewards of judge "
        "and generator. RUBRIC-ARROW (2605.29156).",
    ),
    "rubric_arrow_policy": (
        _ARROW.changed(denominator="absolute"),
        "As `rubric_arrow_judge`, divided by the sum of weights, in [-1, 1]: the policy's reward. RUBRIC-ARROW "
        "(2605.29156).",
    ),
    "tail": (
        _SHARE,
        "Weights (1 to 3) of the criteria met / sum of weights, in [0, 1]. Chasing the Tail (2509.21500).",
    ),
    "weighted": (
        Aggregation(clip=(0.0, 1.0)),
        "Our default: sum of w times score over reward criteria minus the same over penalties, divided by the sum "
        "of the reward criteria's weights, clipped to [0, 1]. Probabilities and levels count as they are.",
    ),
}
"""Name to options and source, sorted by name."""


def preset_names() -> list[str]:
    """The names of all presets, sorted."""
    return sorted(PRESETS)


def preset(name: str, **options: object) -> Aggregation:
    """The aggregation of that name, with some options changed: `preset("rar", missing="skip", min_coverage=0.8)`.

    What each one is, and where it comes from, is in `PRESETS[name]`. Raises ConfigError for an unknown name or a
    wrong option.
    """
    if name not in PRESETS:
        raise ConfigError(f"there is no aggregation named {name!r}", hint=f"use one of {', '.join(preset_names())}")
    return PRESETS[name][0].changed(**options) if options else PRESETS[name][0]


def resolve(aggregation: Aggregation | str) -> Aggregation:
    """A preset's name, or options as they are."""
    return preset(aggregation) if isinstance(aggregation, str) else aggregation
