"""How Python sees each op, one file per family as in the core: names, signatures, documentation.

The namespaces (np, npx, ...) and the methods of arrays take their functions from here. No numeric loops.
"""
