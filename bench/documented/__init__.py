"""Compare the measured figures in README and docs with the records that they come from.

One module for each page, with its ``PASSAGES``. A text without a record cannot be checked: measure and record
first (`bench`), then write the text, then its line here. `tests.bench.test_documented` checks all of them.
"""
