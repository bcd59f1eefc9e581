"""The Runtime API beside a model that steps through the specification's text."""
