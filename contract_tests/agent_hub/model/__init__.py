"""The Agent Hub's jobs beside a model that steps through the specification's text."""
