"""Formats of forwarding tables.

Input: dumps of subnet managers and of ibroute.
Output: forwarding tables by switch.
"""
