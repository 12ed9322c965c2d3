"""A web application that shows the contents of the registry.

Input: an open registry.
Output: a Streamlit application.
"""
