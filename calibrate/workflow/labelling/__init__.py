"""Labellers agree or do not; disputes are adjudicated."""
