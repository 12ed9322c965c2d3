"""Simulated runs: messages sent over a fabric, packet by packet or flit by flit."""
