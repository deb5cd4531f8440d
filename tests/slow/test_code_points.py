"""Every character of Unicode."""

from helpers.code_points import check_code_points


def test_every_code_point_is_cut_alike() -> None:
    check_code_points(range(0x110000))
