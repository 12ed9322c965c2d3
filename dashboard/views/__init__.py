"""The pages and their parts, one module each with a function `draw`.

Input: an open registry and the page's address.
Output: elements of a page.
"""
