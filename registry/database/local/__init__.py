"""The embedded graph server: started on demand, shared by all processes of a user, stopped when idle.

Input: a data folder.
Output: the address and password of a running server.
"""
