"""What checks that generate their requests are made of: cases, jobs to send them for, judgement, repetition."""
