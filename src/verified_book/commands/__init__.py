"""What `python -m verified_book` does, and the runs of single pages that pytest's items share."""
