"""Part of the job page: a placement as a launcher's file, with the command that uses it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from dashboard.widgets import outside
from dashboard.widgets.messages import plain, reason_of
from dashboard.widgets.tables import download
from mapping import launchers as catalog
from registry.errors import InvalidPlacement
from registry.pages.placements import OpenPlacement

_DIALOG = "file dialog"


def menu(opened: OpenPlacement, hosts: Sequence[str]) -> None:
    """Draw a menu of the launchers' formats; the chosen one opens a dialog.

    Parameters
    ----------
    hosts : sequence of str
        Names of the job's hosts, which launchers know.
    """
    chosen = st.menu_button("Get files", catalog.FORMATS.names, icon=":material/download:", key="files")
    if chosen is not None:
        outside.add(_DIALOG, partial(_dialog, opened, hosts, chosen))


@st.dialog("Launcher file", on_dismiss=partial(outside.remove, _DIALOG))
def _dialog(opened: OpenPlacement, hosts: Sequence[str], name: str) -> None:
    """Draw the download of a file and the command that starts a program with it."""
    stored, fabric = opened.stored, opened.snapshot.fabric.named_as(hosts)
    try:
        content = catalog.write(name, stored.placement, fabric)
    except InvalidPlacement as error:
        st.warning(reason_of(error), icon=":material/block:")
        return
    file = f"{stored.id}-{name}.{'csv' if name == 'csv' else 'txt'}"
    st.markdown(f"**{plain(name)}** of placement {plain(stored.id)}, {stored.placement.ranks:,} ranks")
    command = catalog.launch_line(name, stored.placement, fabric, file)
    if command is None:
        st.caption("No launcher reads this file itself.")
    else:
        st.caption("Start the program with")
        st.code(command, language=None, wrap_lines=True)
    download(f"Download {plain(file)}", content, file, key=f"file {name}", mime="text/plain")
