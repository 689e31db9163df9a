"""What does the query mean?"""
