"""Does each launcher start ranks in the requested order? Run ``python -m bench.launchers`` as root, on Linux.

Random orders are applied as ``almanac run`` applies them, and compared with the hosts that an MPI program
prints. The eight hosts are names on this machine. The counts are in ``bench/results/launchers.json``.
"""
