"""The accuracy of dates on small simulated sites, each built to mislead in one way. Larger ones: `benchmarks.truth`."""

from __future__ import annotations

import pytest

from benchmarks.truth.__main__ import GAPS, total
from benchmarks.truth.score import Score
from benchmarks.truth.traffic import VERIFY, Traffic
from benchmarks.truth.trials import TRIALS, trial

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", TRIALS)
def test_no_date_is_wrong_on_a_site_that_misleads(name: str) -> None:
    score, site = Score(), trial(name, 5, 120, 12, GAPS)
    for number, moment in enumerate(Traffic(site).moments(2)):
        score.add_moment(site, moment, last=number == 2)
    tally = total(score.end, VERIFY)
    tally += total(score.between, VERIFY)
    assert tally.wrong == 0, score.mistakes
    assert tally.right > 0
