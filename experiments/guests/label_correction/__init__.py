"""Human labels: grading sheets, agreement with judges, and scores corrected for the judge's errors."""
