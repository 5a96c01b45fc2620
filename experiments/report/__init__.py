"""The report of a run: one HTML file that opens offline."""
from ragbed.experiments.report.page import write_report
from ragbed.experiments.report.report_input import ReportInput

__all__ = ["ReportInput", "write_report"]
