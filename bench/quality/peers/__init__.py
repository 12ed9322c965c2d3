"""Compare our placements with other tools' in one run: ``python -m bench.quality.peers [FOLDER]``.

Tools that are installed are run again: Scotch's ``gmap`` (Debian package ``scotch``), PyScotch and
Mt-KaHyPar (``pip install pyscotch mtkahypar``). What a folder's ``peers.jsonl`` records of tools
counts beside them. Every placement is scored by the same exact evaluation over all shortest paths, and one
with more ranks on a host than it has slots is no result. A tool that is missing, fails or takes too long is
named in the record.
"""
