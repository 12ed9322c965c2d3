"""The service and its parts: the spool of waiting ingests, collectors, their schedule, and the HTTP API.

Input: settings, the output of configured commands, requests.
Output: ingests in the registry, JSON, metrics; messages for the log.
"""
