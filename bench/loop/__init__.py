"""Does a placement make a real program faster? Run ``python -m bench.loop`` as root, on Linux.

A small fabric is built from network namespaces: hosts, leaf switches and one spine, with cables of a limited
rate. A halo exchange and an all-to-all within groups of ranks, both with Open MPI over TCP, run there in
order, at random and placed. What Open MPI counted of each program is the profile; estimated congestion is
recorded next to the measured time of a step, in ``bench/results/loop.json``. If the machine refuses, or with
``--simulate``, SimGrid's SMPI runs the programs, recorded in ``bench/results/loop_simulated.json``.
"""
