"""Compare our placements with other tools' in one run: ``python -m bench.quality.peers [FOLDER]``.

Tools that are installed are run again; those that are missing, fail or take too long are named in the record.
What a folder's ``peers.jsonl`` records of tools counts beside them. Every placement is scored by the same
exact evaluation over all shortest paths, and one with more ranks on a host than it has slots is no result.
Results of other tools are kept in ``peers_runs.json``: ``--peers-only`` runs nothing else, and with
``--keep-peers`` only our searches are run.

Scotch's ``gmap`` is in the Debian package ``scotch``; PyScotch and Mt-KaHyPar come with ``pip install
pyscotch mtkahypar``. Mt-KaHyPar maps onto up to 128 hosts at once; onto more in groups of at most 32, then
onto the parts of each group: it improves a greedy mapping from every block, so that 256 blocks need more
than minutes.

TreeMatch, VieM and SharedMap map onto trees of equal groups: of a torus or mesh, its sides cut into as few
parts as possible, the longest first; the groups of a machine that has some; otherwise hosts in order, cut by
the prime factors of their number. A level costs the mean distance that it adds. Free slots get ranks without
traffic. Each tool is found on the path or in an environment variable:

treematch, TREEMATCH
    The library is in open-mpi/ompi, folder ``3rd-party/treematch`` (we used commit 8efebee, libhwloc-dev).
    Make two files, ``config.h`` and ``ompi_config.h``, with the line ``#define OMPI_HIDDEN``, and compile::

        gcc -O3 -I. -I3rd-party/treematch bench/quality/peers/treematch.c 3rd-party/treematch/*.c \\
            -lhwloc -lm -lpthread -o treematch

viem, VIEM
    schulzchristian/VieM (commit 56395e7)::

        cmake -B build -DCMAKE_BUILD_TYPE=Release && make -C build viem

SharedMap, SHAREDMAP
    HenningWoydt/SharedMap (commit 7217b5f): its ``build.sh`` downloads and builds KaHIP 3.19 and Mt-KaHyPar
    1.5.3. With one thread, as here, it never calls Mt-KaHyPar, so that its headers are enough::

        cmake -S KaHIP -B KaHIP/build -DCMAKE_BUILD_TYPE=Release -DNOMPI=ON
        make -C KaHIP/build kahip_static
        g++ -O3 -std=c++17 -no-pie -fopenmp -ISharedMap -ISharedMap/include -IKaHIP/interface \\
            -Imt-kahypar/include SharedMap/main.cpp SharedMap/src/utility/*.cpp \\
            KaHIP/build/libkahip_static.a -Wl,--unresolved-symbols=ignore-all -o SharedMap/SharedMap
"""
