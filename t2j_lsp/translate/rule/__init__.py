"""What a rule is: its record, the calls it binds, the facts it may ask for, the text it writes."""
