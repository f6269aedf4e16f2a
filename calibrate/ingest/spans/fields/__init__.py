"""Read single fields from the forms that spans carry: messages, documents, log-probabilities, schemas."""
