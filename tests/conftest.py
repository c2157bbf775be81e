"""Fixtures that several rooms share. Data and helper functions to import are in shared.py and commands.py."""

import hypothesis
import pytest

import kdmaps

# No deadline: a correct result must not fail on a busy machine.
hypothesis.settings.register_profile("unhurried", deadline=None)
hypothesis.settings.load_profile("unhurried")


@pytest.fixture(scope="session")
def X():
    """200 samples in two columns, read-only because they are shared. Modules that need others define their own X."""
    samples = kdmaps.problems.load("ou2d-4").sample(200, random_state=0)
    samples.flags.writeable = False
    return samples
