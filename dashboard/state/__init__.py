"""What all pages share: who is looking, the searches in the background, the list of pages.

Input: settings, the browser's request, and work to do.
Output: a `Viewer`, a `Searches` object and a `Site`, which every page receives.
"""
