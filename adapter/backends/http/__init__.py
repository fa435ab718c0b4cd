"""HTTP backend: values from JSON, XML or text documents, for systems without a backend of their own."""
