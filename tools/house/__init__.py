"""The rules of the house that neither imports nor types can show. Run by `make check`."""
