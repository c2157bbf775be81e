import pytest
from small_problems import make_samples


@pytest.fixture(scope="session")
def samples():
    return make_samples()
