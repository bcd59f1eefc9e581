"""Many simulated Runtimes at once, and the history of what they did."""
