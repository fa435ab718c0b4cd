"""The attacks of the hostile tenants, in a process of their own."""
