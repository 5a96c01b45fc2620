"""The axes of the report's charts, and how points keep from hiding each other."""
import pytest

from ragbed.experiments.report.charts import cost_axis, percent_axis, quality_axis, spread_points


def test_points_that_would_hide_each_other_are_moved_apart_and_others_stay():
    assert spread_points([10.0, 50.0, 10.0, 10.5], [20.0, 20.0, 80.0, 24.0]) == [9.25, 50.0, 10.0, 11.25]


@pytest.mark.parametrize(("values", "ticks"), [
    ([0.0, 0.0], "0.00 0.20 0.40 0.60 0.80 1.00"), ([0.0, 0.05], "0.00 0.01 0.02 0.03 0.04 0.05"),
    ([0.8, 0.9], "0.80 0.82 0.84 0.86 0.88 0.90"), ([0.3, 0.9], "0.00 0.20 0.40 0.60 0.80"),
    ([], "0.00 0.20 0.40 0.60 0.80 1.00"), ([1.0], "0.00 0.20 0.40 0.60 0.80 1.00")])
def test_the_axis_of_a_share_fits_and_stays_within_its_bounds(values, ticks):
    axis = quality_axis(values)
    assert [tick.text for tick in axis.ticks] == ticks.split()
    assert axis.low >= 0
    assert axis.high <= 1


def test_a_metric_below_zero_has_an_axis_that_reaches_there():
    axis = quality_axis([-0.3, 0.5], least=-0.5)
    assert (axis.low <= -0.3, axis.low >= -0.5, "0.00" in [tick.text for tick in axis.ticks]) == (True, True, True)


def test_costs_far_apart_stand_on_a_logarithmic_axis():
    near, far = (cost_axis(values, lambda value: f"{value:,.0f}") for values in ([100, 1000], [100, 10_000]))
    assert (near.logarithmic, near.low, near.ticks[0].text) == (False, 0.0, "0")
    assert (far.logarithmic, far.at(1000)) == (True, pytest.approx(50, abs=0.1))
    assert [tick.text for tick in far.ticks] == ["100", "200", "500", "1,000", "2,000", "5,000", "10,000"]


def test_shares_stand_in_percent_over_the_part_that_they_take():
    assert [tick.text for tick in percent_axis([0.7, 0.8]).ticks] == ["65 %", "70 %", "75 %", "80 %", "85 %"]
    assert [tick.text for tick in percent_axis([0.0, 0.9]).ticks] == ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]
