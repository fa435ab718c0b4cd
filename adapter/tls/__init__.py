"""The certificate we serve with, and whose certificates we ask for."""
