"""Replay of messages over a fabric, packet by packet or flit by flit.

Input: a fabric, a placement, and the messages of a trace or profile.
Output: delivered bytes, latencies and loads of links over time.
"""
