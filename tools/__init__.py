"""What is run by hand or overnight beside the tests."""
