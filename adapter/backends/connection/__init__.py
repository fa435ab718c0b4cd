"""What several kinds of metric systems are asked with: secrets, deadlines, HTTP, batches. None is in here."""
