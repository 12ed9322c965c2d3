"""A page without a database: nothing but a title, or one table and one chart too (``?parts=1``)."""

from __future__ import annotations

import altair as alt
import pandas as pd
import streamlit as st

PARTS = "parts"
"""Parameter of the address that adds the table and the chart."""


def main() -> None:
    """Draw the page."""
    st.title("Streamlit alone")
    if PARTS in st.query_params:
        table = pd.DataFrame({"a": range(20), "b": range(20)})
        st.dataframe(table)
        st.altair_chart(alt.Chart(table).mark_line().encode(x="a", y="b"))


if __name__ == "__main__":
    main()
