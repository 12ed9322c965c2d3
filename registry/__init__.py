"""The data types of Fabric Almanac and the graph database behind them.

Input: parsed or computed values (frozen dataclasses over numpy arrays).
Output: the same values read back, for any time, by id or by name.
"""
