"""Names of the hub's rows in the specification."""

JOB = "HubJob"
NODE = "Node"
SCRIPT = "NodeScript"
SUBMISSION = "HubSubmission"
DELIVERY = "WebhookDelivery"
CALLBACK = "DefaultCallback"
