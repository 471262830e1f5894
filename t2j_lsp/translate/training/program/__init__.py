"""What training code is made of: objects and scopes, statements, and what they read, call and give."""
