"""Requests answered in memory, without a database.

Input: a request with its fabric, profile and placement.
Output: a report with placement, evaluation and bounds.
"""
