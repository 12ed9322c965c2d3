"""How long does it take, and how much memory: ingest, congestion and searches at growing sizes?"""
