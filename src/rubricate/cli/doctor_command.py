"""The parameters of `rubricate doctor`."""

from __future__ import annotations

from typing import Annotated

import typer

from rubricate.cli import options as opt
from rubricate.cli.reporting import reported

__all__ = ["doctor"]

Models = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[MODEL]...",
        help="Models to probe: openai:NAME, http://HOST:PORT/v1#NAME, local:smollm2, local:/DIR, mock:yes.",
        show_default=False,
    ),
]
Needs = Annotated[
    list[str] | None,
    typer.Option("--need", metavar="EXTRA", help="Exit with 1 unless this extra is there. May be repeated."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Timeout = Annotated[float, typer.Option(min=0.1, metavar="S", help="Seconds for each probe.")]
Gpu = Annotated[bool, typer.Option("--gpu", help="Ask torch for GPUs; importing it takes seconds.")]


def doctor(
    models: Models = None,
    need: Needs = None,
    prices: opt.Prices = None,
    timeout: Timeout = 60.0,
    gpu: Gpu = False,
    as_json: AsJson = False,
    debug: opt.Debug = False,
) -> None:
    """Say what is installed, what is missing, and what models can do.

    Without MODEL nothing is asked of any model. With one, some 30 short calls and about 20,000 prompt tokens are
    spent on it; the bound is printed first.

    Exit codes: 0 all is well, 1 a model does not answer or an extra of --need is missing, 2 bad input.
    """
    with reported(debug):
        from rubricate.cli.doctor import DoctorOptions, run_doctor

        chosen = DoctorOptions(
            models=tuple(models or ()),
            needs=tuple(need or ()),
            prices=opt.read_prices(prices),
            timeout=timeout,
            gpu=gpu,
            as_json=as_json,
        )
        raise typer.Exit(run_doctor(chosen))
