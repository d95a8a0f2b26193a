"""What the tests run against: real servers, real worker processes, a scripted model."""
