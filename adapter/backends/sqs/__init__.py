"""Amazon SQS: how many messages wait, are being worked on, or are put off, in one queue or in many."""
