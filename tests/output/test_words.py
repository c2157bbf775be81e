"""What is said of a choice in words."""

from types import SimpleNamespace

import pytest

from kdmaps.output.words import _of_search


@pytest.mark.parametrize(
    ("margin", "errors", "words"),
    [
        (0.5, 3.0, "is 0.5 behind, 3.0 standard errors of the difference: a real difference"),
        (0.5, 1.5, "is 0.5 behind, 1.5 standard errors of the difference: a small difference"),
        (0.5, 0.5, "is 0.5 behind, 0.5 standard errors of the difference: either would do"),
        (-0.5, -0.7, "scores 0.5 more, 0.7 standard errors of the difference: too little to go beyond the grid"),
    ],
)
def test_the_runner_up(margin, errors, words):
    search = SimpleNamespace(
        cv_results_={"score": [1.0], "standard_error": [0.1], "fold_agreement": [0.99]},
        best_index_=0,
        best_score_=1.0,
        scoring="timescale",
        certainty_={"margin": margin, "margin_in_standard_errors": errors},
        extensions_=[],
        suggested_n_components_=None,
        n_components=2,
    )
    assert words in " ".join(_of_search(search))
