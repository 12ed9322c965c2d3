"""Checks of a fabric, listed in `mapping.checks.checks`.

Input: a fabric with its forwarding tables and intended wiring.
Output: findings: slow, missing and swapped cables, unreachable pairs, loops.
"""
