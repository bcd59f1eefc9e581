"""A second reading of ``x-state-machine``: what its text allows, told by an evaluator that no server runs.

It takes the text as it stands and evaluates it with the library ``common-expression-language``. Parser and closures of
the reference have no part in it, so that a slip in those is not shared.
"""
