"""What remains after kills, full disks, restarts and crowds? Run ``python -m bench.faults [--small] [NAME]``.

A data folder is filled by the demonstration and stopped. Each trial copies it, disturbs one command, and
compares what is stored then with what was stored before and after the same command undisturbed: it must be
one of both. Then the command is repeated, and what is stored must be as after the undisturbed one. Counts are
written to ``bench/results/faults.json``.
"""
