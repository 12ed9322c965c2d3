"""Circuit plans of an optical switch: topology, partition and routes optimised together.

Follows Ajwani, Ali, Hackett, Kirkland and Morrison, "Co-optimizing application partitioning and network
topology for a reconfigurable interconnect", 2013. A switch can connect the nodes of a machine in any topology
with a limited number of links in all and at each node. The vertices of an application (kernels that compute;
data flow along edges) are assigned to nodes, and each edge is routed along one path. The slowest node or link
determines the throughput.

An *application* has vertices and edges, a *topology* has nodes and links; both are undirected. Weights and
speeds have no fixed unit: a speed is weight per unit of time, a throughput output elements per unit of time.
"""
