"""The pages that show the registry in a browser.

Input: an open registry.
Output: a Streamlit application.
"""
