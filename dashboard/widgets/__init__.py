"""Controls and messages that several pages share; the state of a control is stored in the page's address.

Input: options, and the parameters of the page's address.
Output: elements of a page, and what the user chose.
"""
