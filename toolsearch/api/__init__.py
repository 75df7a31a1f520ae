"""What is said over HTTP between the service and its clients: the bodies of requests and answers, as pydantic models."""
