"""Installed libraries whose modules a project uses: what it uses of them is converted along, as files of its own."""
