"""Groups and weights must match the rows of X."""

import numpy as np
import pandas as pd
import pytest

import kdmaps
from shared import known

X = kdmaps.problems.load("ou2d-4").sample(200, random_state=0)
FRAME = pd.DataFrame(X, columns=["x", "y"], index=pd.RangeIndex(1000, 1200))
MODEL = kdmaps.KernelDiffusionMap(1, bandwidth=3.0, n_features=30, random_state=0)
SEARCH = kdmaps.KernelSearchCV(1, families=["gaussian"], bandwidths=2, n_features=30, random_state=0)
pytestmark = known("flat")


@pytest.mark.parametrize("label", [None, np.nan, pd.NA, pd.NaT])
@pytest.mark.parametrize("model", [MODEL, SEARCH], ids=["one kernel", "search"])
def test_missing_group(model, label):
    """NaN must not be treated as a group."""
    groups = np.repeat([1.0, 2.0], 100).astype(object)
    groups[7] = label
    for given in (groups, pd.Series(groups)):
        with pytest.raises(ValueError, match=r"groups: .* row 7 is missing"):
            model.fit(X, groups=given)


@pytest.mark.parametrize("name", ["sample_weight", "groups"])
def test_row_labels_in_another_order(name):
    """Rows are matched by position, so a shuffled series is an error."""
    column = pd.Series(np.repeat([1.0, 2.0], 100), index=FRAME.index)
    shuffled = column.sample(frac=1, random_state=0)
    for call in (MODEL.fit, SEARCH.fit, kdmaps.KernelDiffusionMap(**MODEL.get_params()).fit(FRAME).score):
        with pytest.raises(ValueError, match=rf"{name} .* in another order; .*\.loc\[X\.index\]"):
            call(FRAME, **{name: shuffled})
        call(FRAME, **{name: shuffled.loc[FRAME.index]})
        call(FRAME, **{name: shuffled.to_numpy()})
        call(FRAME, **{name: column.reset_index(drop=True)})  # unrelated labels are accepted
