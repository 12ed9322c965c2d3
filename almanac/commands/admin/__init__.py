"""Commands that look after the installation: database, checks, metrics, settings, pages, demonstration.

Input: settings and command-line options.
Output: status tables, metrics, a running web server.
"""
