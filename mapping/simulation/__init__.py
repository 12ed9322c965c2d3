"""Replay of messages over a fabric, packet by packet or flit by flit."""
