"""What checks that generate their requests are made of, for every API: cases, judgement, repetition, sequences.

A suite adds what its API is about: the situations in which requests meet its subjects (jobs, places for jobs), how a
case becomes a request for one of them, what a request is to be answered, and the rules under which a finding is told.
"""
