"""What the hub's checks that generate their requests are made of, on what every API shares."""
