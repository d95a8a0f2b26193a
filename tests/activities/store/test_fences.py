from __future__ import annotations

from gmi.activities.store.fences import LAST_ATTEMPT, counter_of, epoch_floor, epoch_of, fence


def test_a_later_attempt_is_newer_than_an_earlier_one() -> None:
    assert fence(0, 5, 1) < fence(0, 5, 2) < fence(0, 5)


def test_a_later_counter_is_newer_than_every_attempt_of_an_earlier_one() -> None:
    assert fence(0, 5, LAST_ATTEMPT) < fence(0, 6, 1)


def test_a_newer_epoch_is_newer_than_every_counter_of_an_older_one() -> None:
    assert fence(1, 2**32 - 1, LAST_ATTEMPT) < epoch_floor(2) <= fence(2, 0, 0)


def test_attempts_past_the_last_one_do_not_reach_into_the_counter() -> None:
    assert fence(0, 5, 10**9) == fence(0, 5, LAST_ATTEMPT) < fence(0, 6, 0)


def test_epoch_and_counter_are_found_again() -> None:
    value = fence(3, 123_456, 7)
    assert (epoch_of(value), counter_of(value)) == (3, 123_456)


def test_a_fence_fits_a_signed_64_bit_column() -> None:
    assert fence(2**15 - 1, 2**32 - 1) < 2**63
