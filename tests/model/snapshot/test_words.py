"""Measures in the words in which people read them."""

import pytest

from model.snapshot.snapshot import Count, dimension_words, in_words


@pytest.mark.parametrize(
    ("kept", "shown"),
    [
        ("broker 1 is 200 % above net_in", "broker 1 is 200 % above bytes in"),
        ("10.0 % in net_out, 2.5 % in cpu", "10 % in bytes out, 2.5 % in cpu"),
        ("relieves broker 2 (net_in 5 %)", "relieves broker 2 (bytes in 5 %)"),
        ("12.0 % in net_in@night.", "12 % in bytes in @night."),
        ("leader_net_in and potential_net_out", "leader bytes in and potential bytes out"),
        # Names of partitions and topics.
        ("net_in-3 of my.net_in and net_in.eu", "net_in-3 of my.net_in and net_in.eu"),
    ],
)
def test_sentences_of_files_name_measures_as_screens_do(kept: str, shown: str) -> None:
    assert in_words(kept) == shown


def test_no_measure_is_shown_by_its_key() -> None:
    assert not [words for measure in Count if "_" in (words := dimension_words(measure))]
