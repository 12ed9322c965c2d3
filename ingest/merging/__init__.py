"""Several sources of one moment combined into one.

Input: parsed sources.
Output: one `Intake`, with notes on what the sources disagree on.
"""
