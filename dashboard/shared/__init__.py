"""What pages share: reads that pass the viewer, caches, tables, charts and controls."""
