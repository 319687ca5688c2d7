"""A policy under rubric rewards, in one readable script: TRL's GRPOTrainer with a RubricReward.

    python examples/grpo.py --model Qwen/Qwen3-0.6B --judge http://localhost:8000/v1

Each row of the data brings its own rubric. Rows whose judgement failed are None, which TRL leaves out.
"""

from __future__ import annotations

import argparse
import json

from rubricate import RubricReward, build_judge
from rubricate.data.bundled import load_demo


def main() -> None:
    """Parse the arguments and train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="policy: a model's name or folder")
    parser.add_argument("--judge", default="local:smollm2", help="judge: openai:NAME, http://HOST/v1, local:NAME")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()

    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    # The demo's prompts, each with its rubric as JSON text: one row a prompt.
    rows = {str(sample.rollout.prompt): json.dumps(sample.rubric) for sample in load_demo()}
    data = Dataset.from_list([{"prompt": prompt, "rubric": rubric} for prompt, rubric in rows.items()])
    reward = RubricReward(build_judge(options.judge, mode="logprob"), num_generations=4, deadline=120)
    config = GRPOConfig(
        output_dir="out/grpo",
        max_steps=options.steps,
        per_device_train_batch_size=4,
        num_generations=4,
        max_completion_length=256,
        logging_steps=1,
        use_cpu=options.cpu,
        bf16=not options.cpu,
    )
    trainer = GRPOTrainer(model=options.model, reward_funcs=[reward], args=config, train_dataset=data)
    trainer.train()


if __name__ == "__main__":
    main()
