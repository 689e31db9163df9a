"""What runs next? Ranges of the log through Spark, into views."""
