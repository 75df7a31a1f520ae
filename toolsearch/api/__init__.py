"""What is said over HTTP between the service and its clients: bodies of requests and answers, as pydantic models."""
