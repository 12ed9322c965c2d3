"""Cost of a placement, link by link.

Input: a fabric, a profile and placements.
Output: congestion, hop-bytes, dilation, baselines and differences per link.
"""
