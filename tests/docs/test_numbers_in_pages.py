"""The search for numbers in pages, which other tests rely on."""

from pages import numbers, states

TEXT = "Words.\n\nOn ou2d-4 kdmaps has 0.996 and .909, with 5,000 samples\nin three seeds.\n- Its error is 12.5 %."


def test_numbers_in_digits_and_words():
    assert numbers(TEXT) == [".996", ".909", "5000", "3", "12.5"]
    assert numbers("0 of Eight, ou3d, 2.0") == ["0", "8", "2.0"]


def test_a_claim_is_found_in_one_paragraph_and_in_order():
    assert states(TEXT, "ou2d-4", 0.996, ".909", 3)
    assert not states(TEXT, "ou2d-4", ".909", ".996")
    assert not states(TEXT, "ou2d-4", ".996", 12.5)
    assert not states(TEXT, "ou10d", ".996")
