"""Formats of fabrics and of intended wiring.

Input: output of fabric tools, and topology files.
Output: a `Fabric`, or intended wiring.
"""
