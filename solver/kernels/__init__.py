"""Compiled inner loops of the search, over plain columns.

Every loop is scalar and ordered, without libraries whose results depend on the
processor: the same columns give the same bits everywhere.
"""
