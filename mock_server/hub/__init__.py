"""The Agent Hub of a world: what its machine does not say. Submissions, nodes, batches, pages, streams, webhooks."""
