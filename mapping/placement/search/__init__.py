"""The portfolio: several chains of strategies and refiners under one limit.

Input: a problem and search options.
Output: the best placement, scored exactly.
"""
