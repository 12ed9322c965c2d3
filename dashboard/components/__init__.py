"""Page elements that Streamlit lacks.

Input: arrays.
Output: elements of a page.
"""
