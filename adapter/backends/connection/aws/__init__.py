"""What CloudWatch and SQS are asked with: regions, credentials, signed calls, and failures in our own words."""
