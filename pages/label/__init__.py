"""Label: draw a sample, label it, see how far labellers agree."""
