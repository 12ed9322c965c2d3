"""Circuits of an optical switch: topology, partition and routing optimised together.

Input: an application and a machine whose nodes a circuit switch joins.
Output: a circuit plan: topology, node of each vertex, routes and throughput, with upper bounds.

Ajwani, Ali, Hackett, Kirkland and Morrison, "Co-optimizing application partitioning and network topology
for a reconfigurable interconnect", 2013: a switch can join a machine's nodes in any topology of at most so
many links, and so many at a node. Vertices of an application (kernels that compute, edges along which data
flow) are put on nodes, and each edge is routed along one path; the slowest node or link tells the throughput.

An *application* has vertices and edges, a *topology* nodes and links, both undirected. Weights and speeds
have no unit of their own: a speed is weight a unit of time, a throughput elements of output a unit of time.
"""
